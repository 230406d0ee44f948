// Downloads each wheel of torch whole, one after the other: its symbol tables lie behind its code.
#include "commands/atlas_reader.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "answers/owners.h"
#include "commands/remote_wheel.h"
#include "commands/required_wheels.h"
#include "facts/wheel.h"
#include "index/candidates.h"
#include "packaging/claims.h"
#include "packaging/tag.h"
#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// FNV-1a: the same in every build of the program.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string packed(const std::vector<std::uint64_t>& hashes) {
  return {reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof(std::uint64_t)};
}

std::vector<std::uint64_t> unpacked(std::string_view text) {
  std::vector<std::uint64_t> hashes(text.size() / sizeof(std::uint64_t));
  std::memcpy(hashes.data(), text.data(), hashes.size() * sizeof(std::uint64_t));
  return hashes;
}

bool is_for(const Candidate& wheel, const std::string& architecture) {
  return std::ranges::any_of(wheel.claims.file_name_tags, [&](const std::string& text) {
    const auto platform = split_tag(text).platform;
    return is_linux_or_any(platform) && system_of_tag(platform) != System::musl &&
           architecture_of_tag(platform) == architecture;
  });
}

Result<TorchTable> read_symbols(PackageIndex& index, const IndexFile& file, TorchTable table) {
  const auto key = file.url + "#" + file.sha256 + "@exports";
  const auto kept = index.cache.find(key + "-cpu"), kept_cuda = index.cache.find(key + "-cuda");
  if (kept && kept_cuda) {
    table.symbols = unpacked(*kept);
    table.cuda_symbols = unpacked(*kept_cuda);
    return table;
  }
  const auto remote = TRY(Remote::open(index.http, index.cache, on_its_server(file), true));
  const auto facts =
      TRY(read_wheel({file.name, remote.bytes()}, {.symbols = true, .device_code = false}));
  std::set<std::uint64_t> symbols, cuda_symbols;
  for (const auto& library : facts.libraries) {
    const auto name = base_name(library.path);
    if (!is_torch_library(name)) continue;
    auto& exports = name.find("cuda") == name.npos ? symbols : cuda_symbols;
    for (const auto& symbol : library.symbols)
      if (symbol.defined) exports.insert(hash_of(symbol.name));
  }
  table.symbols.assign(symbols.begin(), symbols.end());
  table.cuda_symbols.assign(cuda_symbols.begin(), cuda_symbols.end());
  index.cache.store(key + "-cpu", packed(table.symbols));
  index.cache.store(key + "-cuda", packed(table.cuda_symbols));
  return table;
}

}  // namespace

bool TorchTable::has(std::string_view symbol, bool with_cuda) const {
  const auto hash = hash_of(symbol);
  return std::ranges::binary_search(symbols, hash) ||
         (with_cuda && std::ranges::binary_search(cuda_symbols, hash));
}

std::vector<std::string> TorchTable::builds() const {
  std::vector<std::string> all{"cpu"};
  for (const auto& [major, range] : cuda_table().torch_builds) {
    if (!older(minor, range.first) && (range.second.empty() || !older(range.second, minor)))
      all.push_back(major);
  }
  return all;
}

Result<std::vector<TorchTable>> read_torch_tables(PackageIndex& index, const std::string& wanted,
                                                  const std::string& architecture) {
  const bool only_newest = wanted == "newest";
  const auto requirement = parse_requirement("torch" + (only_newest ? ">=2.0" : wanted));
  std::vector<std::string> notes;
  const auto found = TRY(find_candidates(index, requirement, notes));  // newest first
  std::vector<TorchTable> tables;
  for (const auto& wheel : found.wheels) {
    if (!is_for(wheel, architecture)) continue;
    const auto& version = wheel.claims.version;
    const auto minor = minor_of(version);
    const bool is_newest = tables.empty() || tables.back().minor != minor;
    if (only_newest && is_newest && !tables.empty()) break;
    if (!is_newest && tables.back().version != version) continue;
    if (is_newest) {
      auto& table = tables.emplace_back(
          TRY(read_symbols(index, wheel.file, {.minor = minor, .version = version})));
      table.cuda = TRY(cuda_of_torch(
          index, wheel,
          {.architecture = architecture, .python = PythonFacts{.version = "3.11.9"}}));
    }
    auto& pythons = tables.back().pythons;
    for (const auto& text : wheel.claims.file_name_tags) {
      const auto abi = split_tag(text).abi;
      const auto python = abi.starts_with("cp") ? python_version_of_tag(abi.substr(2)) : "";
      if (!python.empty() && !contains(pythons, python)) pythons.push_back(python);
    }
  }
  std::ranges::reverse(tables);
  for (auto& table : tables) {
    std::ranges::sort(table.pythons);  // 3.14 before 3.14t
    std::ranges::stable_sort(table.pythons, older);
  }
  return tables;
}

}  // namespace wheelscope
