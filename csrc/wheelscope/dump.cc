// Lists symbols and extracts device code.
#include "dump.h"

#include <algorithm>
#include <cstdio>

#include "fatbin.h"
#include "tables.h"

namespace wheelscope {
namespace {

std::string numbered(std::size_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%04zu", number);
  return text;
}

void extract_from(const std::string& path, Bytes file, bool ptx,
                  const std::function<void(const ExtractedCode&)>& use,
                  std::vector<Finding>& findings) {
  const auto elf = read_elf(file);
  if (!elf)
    return findings.push_back({.id = "elf-broken",
                               .place = path,
                               .what = elf.error().what,
                               .fix = "replace the file",
                               .offset = elf.error().offset});
  const auto fatbin = read_device_code(*elf, file);
  for (const auto& problem : fatbin.problems) {
    findings.push_back({.id = "fatbin-broken",
                        .place = path,
                        .what = problem.what,
                        .fix = "replace the file",
                        .offset = problem.offset});
  }
  std::size_t number = 0;
  for (const auto& code : fatbin.codes) {
    if ((code.kind == DeviceCode::Kind::ptx) != ptx) continue;
    auto contents = decompress(code);
    ++number;
    if (!contents) {
      findings.push_back({.id = "fatbin-broken",
                          .place = path,
                          .what = contents.error().what,
                          .fix = "replace the file",
                          .offset = contents.error().offset});
      continue;
    }
    if (ptx) contents->resize(std::min(contents->find('\0'), contents->size()));
    use({path + "." + numbered(number) + (ptx ? ".compute_" : ".sm_") + code.target +
             (ptx ? ".ptx" : ".cubin"),
         std::move(*contents)});
  }
}

std::map<std::string, std::string> definitions(const Item& item) {
  std::map<std::string, std::string> providers;
  for (const auto& library : item.libraries) {
    for (const auto& symbol : library.symbols) {
      if (symbol.defined) providers.try_emplace(symbol.name, library.path);
    }
  }
  return providers;
}

std::string provider_of(const SymbolFact& symbol,
                        const std::map<std::string, std::string>& inside) {
  if (!symbol.library.empty()) return symbol.library;
  if (auto found = inside.find(symbol.name); found != inside.end()) return found->second;
  if (auto shim = torch_shims().find(symbol.name); shim != torch_shims().end())
    return std::string(shim->second.library);
  if (symbol.name.starts_with("Py") || symbol.name.starts_with("_Py")) return "python";
  return {};
}

}  // namespace

std::string spelled(const SymbolFact& symbol) {
  if (symbol.version.empty()) return symbol.name;
  return symbol.name + (symbol.defined && symbol.default_version ? "@@" : "@") + symbol.version;
}

Json symbols_json(const Item& item) {
  const auto inside = definitions(item);
  auto symbols = Json::array();
  for (const auto& library : item.libraries) {
    for (const auto& symbol : library.symbols) {
      const auto provider = symbol.defined ? "" : provider_of(symbol, inside);
      symbols.push_back({{"library", library.path},
                         {"name", symbol.name},
                         {"version", symbol.version.empty() ? Json(nullptr) : Json(symbol.version)},
                         {"defined", symbol.defined},
                         {"weak", symbol.weak},
                         {"provider", provider.empty() ? Json(nullptr) : Json(provider)}});
    }
  }
  return {{"file", item.file}, {"symbols", std::move(symbols)}};
}

std::string symbols_text(const Item& item) {
  const auto inside = definitions(item);
  std::string text;
  for (const auto& library : item.libraries) {
    text += library.path + "\n";
    for (const auto& symbol : library.symbols) {
      text += symbol.defined ? "  defined  " : symbol.weak ? "  weak     " : "  needed   ";
      text += spelled(symbol);
      const auto provider = symbol.defined ? "" : provider_of(symbol, inside);
      text += provider.empty() ? "\n" : "  from " + provider + "\n";
    }
  }
  return text;
}

Result<void> extract_code(const WheelInput& input, bool ptx,
                          const std::function<void(const ExtractedCode&)>& use,
                          std::vector<Finding>& findings) {
  if (looks_like_elf(input.bytes)) {
    extract_from(input.path.substr(input.path.rfind('/') + 1), input.bytes, ptx, use, findings);
    return {};
  }
  const auto archive = TRY(read_zip(input.bytes));
  for (const auto& member : archive.members) {
    if (!member.readable || member.is_folder()) continue;
    const auto data = read_member(input.bytes, member);
    if (!data) {
      findings.push_back({.id = data.error().id,
                          .place = member.name,
                          .what = data.error().error.what,
                          .fix = "build the wheel again",
                          .offset = data.error().error.offset});
    } else if (looks_like_elf(data->bytes())) {
      extract_from(member.name, data->bytes(), ptx, use, findings);
    }
  }
  return {};
}

}  // namespace wheelscope
