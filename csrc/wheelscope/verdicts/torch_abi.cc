// Judges the torch ABI: C shims are stable and each has a first version; a C++ name binds to the
// torch that built it.
#include "verdicts/torch_abi.h"

#include <algorithm>
#include <array>

#include "tables/tables.h"
#include "text/dotted_version.h"
#include "text/text.h"

namespace wheelscope {
namespace {

bool is_shim(std::string_view name) {
  return name.starts_with("aoti_torch_") || name.starts_with("torch_");
}

// Whether a mangled name mentions a type or function of at::, c10:: or torch:: (its header-only and
// stable parts apart).
bool mentions_torch(std::string_view mangled) {
  for (const std::string_view space : {"2at", "3c10", "5torch"}) {
    for (auto at = mangled.find(space); at != mangled.npos; at = mangled.find(space, at + 1)) {
      if (at == 0 || (mangled[at - 1] != 'N' && mangled[at - 1] != 'K'))
        continue;  // not the outermost namespace
      const auto rest = mangled.substr(at + space.size());
      if (rest.starts_with("6stable") || rest.starts_with("10headeronly")) continue;
      return true;
    }
  }
  return false;
}

bool provides_torch(const LibraryFacts& library) {
  return base_name(library.path) == "libtorch_cpu.so" || library.soname == "libtorch_cpu.so";
}

}  // namespace

bool is_torch_symbol(std::string_view name) {
  if (name.starts_with("_Z")) return mentions_torch(name);
  return is_shim(name) || name.starts_with("THP");
}

TorchVerdict judge_torch(const std::vector<LibraryFacts>& libraries) {
  TorchVerdict verdict;
  if (std::ranges::any_of(libraries, provides_torch)) return verdict;  // torch itself
  std::set<std::string> bound, unknown;
  std::map<std::string, std::set<std::string>> shims;  // first version -> symbols
  bool uses_shims = false;
  for (const auto& library : libraries) {
    for (const auto& [symbol, needed] : library.torch_symbols) {
      if (!is_shim(symbol)) {
        bound.insert(symbol);
        continue;
      }
      uses_shims = true;
      if (!needed) continue;  // weak: the library copes without it
      const auto shim = torch_shims().find(symbol);
      if (shim == torch_shims().end())
        unknown.insert(symbol);
      else
        shims[std::string(shim->second.first_version)].insert(symbol);
    }
  }
  verdict.unknown.assign(unknown.begin(), unknown.end());
  if (!bound.empty()) {
    verdict.abi = TorchAbi::cxx;
    verdict.symbols.assign(bound.begin(), bound.end());
  } else if (uses_shims) {
    verdict.abi = TorchAbi::stable;
    const auto newest =
        std::ranges::max_element(shims, older, [](const auto& entry) { return entry.first; });
    if (newest != shims.end()) {
      verdict.min = newest->first;
      verdict.symbols.assign(newest->second.begin(), newest->second.end());
    }
  }
  return verdict;
}

}  // namespace wheelscope
