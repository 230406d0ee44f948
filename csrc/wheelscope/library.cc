// Turns one ELF file into facts: copies what outlives the file's bytes, and sums up its device
// code.
#include "library.h"

#include <elf.h>

#include <algorithm>
#include <tuple>

#include "cudart.h"
#include "fatbin.h"
#include "torch_abi.h"
#include "version.h"

namespace wheelscope {
namespace {

std::string kind_of(const Elf& elf) {
  if (elf.machine == EM_CUDA) return "cubin";
  if (elf.type == ET_REL) return "object";
  if (elf.type == ET_EXEC || !elf.interpreter.empty()) return "executable";
  return "shared";
}

std::vector<DeviceTarget> sum_up(const std::vector<DeviceCode>& codes) {
  std::map<std::tuple<std::string, std::string, std::string, bool>, DeviceTarget> groups;
  for (const auto& code : codes) {
    auto& group =
        groups[{name_of(code.kind), code.target, name_of(code.compression), code.relocatable}];
    ++group.count;
    if (older(group.isa, code.isa)) group.isa = code.isa;
    group.bytes += code.payload.size();
    group.uncompressed_bytes += code.size;
  }
  std::vector<DeviceTarget> targets;
  for (auto& [key, group] : groups) {
    std::tie(group.kind, group.target, group.compression, group.relocatable) = key;
    targets.push_back(group);
  }
  return targets;
}

// The CUDA version that cubins record since 12.8 for new GPUs and 13.0 for all; asked of the
// smallest for the newest GPU.
std::string toolkit_of(const std::vector<DeviceCode>& codes) {
  constexpr std::uint64_t largest_asked = 16 << 20;
  const DeviceCode* asked = nullptr;
  for (const auto& code : codes) {
    if (code.kind != DeviceCode::Kind::sass || code.size > largest_asked) continue;
    if (!asked || older(asked->target, code.target) ||
        (code.target == asked->target && code.size < asked->size))
      asked = &code;
  }
  if (!asked) return {};
  const auto cubin = decompress(*asked);
  if (!cubin) return {};
  const auto elf = read_elf(Bytes(std::as_bytes(std::span(*cubin))));
  if (!elf) return {};
  for (const auto& section : elf->sections) {
    constexpr std::string_view mark = "compilation tools, release ";
    const auto text = section.data.text();
    if (const auto at = text.find(mark); section.name == ".note.nv.tkinfo" && at != text.npos) {
      const auto version = text.substr(at + mark.size());
      return std::string(version.substr(0, version.find_first_not_of("0123456789.")));
    }
  }
  return {};
}

bool printable(char c) {
  return c >= 0x20 && c < 0x7F;
}

// Strings of read-only data that start with one of the prefixes: paths that the compiler left
// behind.
std::vector<std::string> find_build_paths(const Elf& elf,
                                          const std::vector<std::string>& prefixes) {
  constexpr std::size_t most_paths = 50, longest_path = 300;
  std::set<std::string> paths;
  for (const auto& section : elf.sections) {
    if (section.name == ".nv_fatbin" || section.name == "__nv_relfatbin" ||
        section.name.starts_with(".text"))
      continue;
    const auto text = section.data.text();
    for (const auto& prefix : prefixes) {
      for (auto at = text.find(prefix); at != text.npos && paths.size() < most_paths;
           at = text.find(prefix, at + 1)) {
        if (at > 0 &&
            (std::isalnum(static_cast<unsigned char>(text[at - 1])) || text[at - 1] == '.'))
          continue;  // the middle of a name
        auto end = at;
        while (end < text.size() && end - at < longest_path && printable(text[end])) ++end;
        paths.emplace(text.substr(at, end - at));
      }
    }
  }
  return {paths.begin(), paths.end()};
}

void copy_symbols(const Elf& elf, bool all, LibraryFacts& library) {
  for (const auto& symbol : elf.symbols) {
    if (all) {
      library.symbols.push_back({std::string(symbol.name), std::string(symbol.version),
                                 std::string(symbol.library), symbol.defined, symbol.weak,
                                 symbol.default_version});
    }
    if (symbol.defined) {
      library.python_module |= symbol.name.starts_with("PyInit_");
      continue;
    }
    if (symbol.name.starts_with("Py") || symbol.name.starts_with("_Py")) {
      library.python_symbols[std::string(symbol.name)] |= !symbol.weak;
    } else if (is_torch_symbol(symbol.name)) {
      library.torch_symbols[std::string(symbol.name)] |= !symbol.weak;
    }
  }
  std::ranges::sort(library.symbols, {},
                    [](const SymbolFact& s) { return std::tie(s.defined, s.name, s.version); });
}

}  // namespace

LibraryFacts read_library(const std::string& path, Bytes file, const ScanOptions& options,
                          std::vector<Finding>& findings) {
  LibraryFacts library{.path = path, .size = file.size()};
  auto report = [&](const char* id, const Error& error) {
    findings.push_back({.id = id,
                        .place = path,
                        .what = error.what,
                        .fix = "rebuild or replace the file; it is damaged",
                        .offset = error.offset});
  };
  auto elf = read_elf(file);
  if (!elf) {
    library.machine = "unknown";
    library.kind = "broken";
    report("elf-broken", elf.error());
    return library;
  }
  for (const auto& problem : elf->problems) report("elf-broken", problem);
  library.machine = machine_name(*elf);
  library.bits = elf->wide ? 64 : 32;
  library.big_endian = elf->big_endian;
  library.kind = kind_of(*elf);
  library.soname = elf->soname;
  library.rpath = elf->rpath;
  library.runpath = elf->runpath;
  library.interpreter = elf->interpreter;
  library.needed = elf->needed;
  library.version_needs = elf->version_needs;
  library.version_definitions = elf->version_definitions;
  library.hardening = elf->hardening;
  library.dynamic = elf->dynamic;
  library.debug_sections = elf->debug_sections;
  library.has_symbol_table = elf->has_symbol_table;
  copy_symbols(*elf, options.symbols, library);
  const auto fatbin = read_device_code(*elf, file);
  for (const auto& problem : fatbin.problems) report("fatbin-broken", problem);
  library.device_code = sum_up(fatbin.codes);
  library.toolkit = toolkit_of(fatbin.codes);
  if (auto cudart = find_static_cudart(*elf)) {
    library.cudart_version = cudart->version;
    library.cudart_evidence = cudart->evidence;
  }
  if (!options.build_prefixes.empty())
    library.build_paths = find_build_paths(*elf, options.build_prefixes);
  return library;
}

}  // namespace wheelscope
