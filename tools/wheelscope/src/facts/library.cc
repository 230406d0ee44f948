// Turns one file into facts: copies what outlives the file's bytes, and sums up its device code.
#include "facts/wheel.h"

#include <elf.h>

#include <algorithm>
#include <tuple>

#include "readers/archive.h"
#include "readers/elf_file.h"
#include "readers/fatbin.h"
#include "readers/traces.h"
#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {
namespace {

constexpr std::uint64_t entry_cost = 128;  // of a small entry of a map, beside its text

FileKind kind_of(const Elf& elf) {
  if (elf.machine == EM_CUDA) return FileKind::cubin;
  if (elf.type == ET_REL) return FileKind::object;
  if (elf.type == ET_EXEC || !elf.interpreter.empty()) return FileKind::executable;
  return FileKind::shared;
}

Role role_of(const Elf& elf) {
  if (elf.machine == EM_CUDA) return Role::device;
  return is_host_machine(elf) ? Role::host : Role::foreign;
}

System system_of(const LibraryFacts& library) {
  auto needs = [&](std::string_view start) {
    return std::ranges::any_of(library.needed,
                               [&](const std::string& name) { return name.starts_with(start); });
  };
  const auto loader = base_name(library.interpreter);
  const auto versions = library.version_needs.find("libc.so");
  if (loader == "linker" || loader == "linker64" ||
      (versions != library.version_needs.end() && versions->second.contains("LIBC")))
    return System::android;
  if (loader.starts_with("ld-musl-") || needs("libc.musl-") || needs("ld-musl-") ||
      contains(library.needed, "libc.so"))
    return System::musl;
  if (!loader.empty() || needs("libc.so.6") || needs("ld-linux") || needs("ld64.so."))
    return System::glibc;
  const bool named =
      library.path.ends_with("-linux-musl.so") || library.path.ends_with("-linux-musleabihf.so");
  return named ? System::musl : System::any;
}

std::vector<DeviceTarget> sum_up(const std::vector<DeviceCode>& codes) {
  std::map<std::tuple<CodeKind, std::string, std::string, bool>, DeviceTarget> groups;
  for (const auto& code : codes) {
    auto& group = groups[{code.kind, code.target, name_of(code.compression), code.relocatable}];
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

// Counts the fat binaries with the same targets.
std::vector<FatbinGroup> group_fatbins(const Fatbin& fatbin) {
  using Targets = std::pair<std::set<std::string>, std::set<std::string>>;
  std::map<Targets, std::uint64_t> groups;
  for (std::size_t i = 0; i < fatbin.codes.size();) {
    Targets targets;
    const auto container = fatbin.codes[i].container;
    for (; i < fatbin.codes.size() && fatbin.codes[i].container == container; ++i) {
      const auto& code = fatbin.codes[i];
      if (code.relocatable) continue;  // runs when it is linked
      if (code.kind == CodeKind::sass) targets.first.insert(code.target);
      if (code.kind == CodeKind::ptx) targets.second.insert(code.target);
    }
    if (!targets.first.empty() || !targets.second.empty()) ++groups[targets];
  }
  std::vector<FatbinGroup> result;
  result.reserve(groups.size());
  for (const auto& [targets, count] : groups)
    result.push_back({targets.first, targets.second, count});
  return result;
}

// Returns the CUDA version that cubins record: for new GPUs since CUDA 12.8, for all since 13.0.
// Reads the smallest cubin for the newest GPU.
std::string toolkit_of(const std::vector<DeviceCode>& codes, Allowance& memory) {
  constexpr std::uint64_t largest_asked = 16 << 20;
  const DeviceCode* asked = nullptr;
  for (const auto& code : codes) {
    if (code.kind != CodeKind::sass || code.size > largest_asked) continue;
    if (!asked || older(asked->target, code.target) ||
        (code.target == asked->target && code.size < asked->size))
      asked = &code;
  }
  if (!asked) return {};
  Loan loan(memory);
  const auto cubin = decompress(*asked, loan);
  if (!cubin) return {};
  const auto elf = read_elf(Bytes(std::as_bytes(std::span(*cubin))), loan);
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

bool is_printable(char c) {
  return c >= 0x20 && c < 0x7F;
}

// Returns strings of read-only data that start with one of the prefixes: paths that the compiler
// left behind.
std::vector<std::string> find_build_paths(const Elf& elf,
                                          const std::vector<std::string>& prefixes) {
  constexpr std::size_t most_paths = 50, longest_path = 300;
  std::set<std::string> paths;
  for (const auto& section : elf.sections) {
    if (section.name == ".nv_fatbin" || section.name == "__nv_relfatbin" ||
        section.name.starts_with(".text"))
      continue;
    const auto data = section.data.whole("section");
    if (!data) continue;
    const auto text = data->text();
    for (const auto& prefix : prefixes) {
      for (auto at = text.find(prefix); at != text.npos && paths.size() < most_paths;
           at = text.find(prefix, at + 1)) {
        if (at > 0 &&
            (std::isalnum(static_cast<unsigned char>(text[at - 1])) || text[at - 1] == '.'))
          continue;  // the middle of a name
        auto end = at;
        while (end < text.size() && end - at < longest_path && is_printable(text[end])) ++end;
        paths.emplace(text.substr(at, end - at));
      }
    }
  }
  return {paths.begin(), paths.end()};
}

// Copies texts and symbols while the allowance lasts.
class Copier {
 public:
  Copier(const Elf& elf, Allowance& memory, LibraryFacts& library)
      : elf_(elf), memory_(memory), library_(library) {}

  // Returns false if there was not enough memory, so that facts are missing.
  bool run(const ScanOptions& options) {
    return copy(elf_.soname, library_.soname) && copy(elf_.rpath, library_.rpath) &&
           copy(elf_.runpath, library_.runpath) && copy(elf_.interpreter, library_.interpreter) &&
           copy_list(elf_.needed, library_.needed) &&
           copy_list(elf_.debug_sections, library_.debug_sections) && copy_versions() &&
           copy_symbols(options.interfaces) && (!options.symbols || copy_all_symbols());
  }

 private:
  bool afford(std::string_view text) { return memory_.take(text.size() + entry_cost); }
  // Verdicts, findings and reports copy these texts again, so they count several times.
  bool copy(std::string_view text, std::string& target) {
    if (!memory_.take(8 * text.size() + entry_cost)) return false;
    target = text;
    return true;
  }
  bool copy_list(const std::vector<std::string_view>& list, std::vector<std::string>& target) {
    return std::ranges::all_of(
        list, [&](std::string_view text) { return copy(text, target.emplace_back()); });
  }
  bool copy_versions() {
    for (const auto& need : elf_.version_needs) {
      if (!afford(need.version) || !afford(need.library)) return false;
      if (!need.weak)  // weak ones may be absent
        library_.version_needs[std::string(need.library)].emplace(need.version);
    }
    for (const auto& version : elf_.version_definitions) {
      if (!afford(version)) return false;
      library_.version_definitions.emplace(version);
    }
    return true;
  }
  bool copy_symbols(bool interfaces) {
    for (const auto& symbol : elf_.symbols) {
      if (symbol.defined) {
        library_.exports_init |= symbol.name.starts_with("PyInit_");
        library_.exports_slots |= symbol.name.starts_with("PyModExport_");
        library_.python_module = library_.exports_init || library_.exports_slots;
        if (interfaces && is_python_symbol(symbol.name)) {
          if (!afford(symbol.name)) return false;
          library_.python_like_exports.emplace(symbol.name);
        }
        continue;
      }
      if (!interfaces) continue;
      if (!symbol.weak && platform_table("manylinux").forbidden.contains(symbol.name))
        library_.forbidden_symbols.emplace(symbol.name);
      auto* known = is_python_symbol(symbol.name)  ? &library_.python_symbols
                    : is_torch_symbol(symbol.name) ? &library_.torch_symbols
                                                   : nullptr;
      if (!known) continue;
      if (!afford(symbol.name)) return false;
      (*known)[std::string(symbol.name)] |= !symbol.weak;
    }
    return true;
  }
  // Copies the undefined symbols sorted by name. There are hundreds of thousands of others, and
  // sorting them takes longer than everything else; a report sorts them if it prints them.
  bool copy_all_symbols() {
    std::vector<const ElfSymbol*> undefined, defined;
    for (const auto& symbol : elf_.symbols)
      (symbol.defined ? defined : undefined).push_back(&symbol);
    std::ranges::sort(undefined, {},
                      [](const ElfSymbol* one) { return std::tie(one->name, one->version); });
    library_.symbols.reserve(elf_.symbols.size());
    auto copy_each = [&](const std::vector<const ElfSymbol*>& symbols) {
      return std::ranges::all_of(symbols, [&](const auto* one) { return copy_symbol(*one); });
    };
    return copy_each(undefined) && copy_each(defined);
  }
  bool copy_symbol(const ElfSymbol& symbol) {
    // A report of missing symbols repeats the names of undefined ones, and demangles them.
    const std::uint64_t copies = symbol.defined ? 1 : 8;
    const auto length = symbol.name.size() + symbol.version.size() + symbol.library.size();
    if (!memory_.take(sizeof(SymbolFact) + copies * length)) return false;
    library_.symbols.push_back({std::string(symbol.name), std::string(symbol.version),
                                std::string(symbol.library), symbol.defined, symbol.weak,
                                symbol.default_version, symbol.first_version});
    return true;
  }

  const Elf& elf_;
  Allowance& memory_;
  LibraryFacts& library_;
};

// True if a mangled name mentions a type or function of at::, c10:: or torch::, except its
// header-only and stable parts.
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

class LibraryReader {
 public:
  LibraryReader(const std::string& path, Bytes file, const ScanOptions& options, Allowance& memory,
                ProblemList& problems)
      : file_(file), options_(options), memory_(memory), problems_(problems) {
    library_.path = path;
    library_.size = file.size();
  }

  LibraryFacts read_elf_file() {
    Loan loan(memory_);
    auto elf = read_elf(file_, loan);
    if (!elf) {
      library_.machine = "unknown";
      library_.kind = FileKind::broken;
      problem("elf-broken", elf.error());
      return std::move(library_);
    }
    for (const auto& error : elf->problems) problem("elf-broken", error);
    if (elf->problems.empty()) {
      for (const auto& error : elf->section_problems) problem("elf-sections", error);
    }
    describe(*elf);
    if (!Copier(*elf, memory_, library_).run(options_))
      problem("limit", {0, "has more names than a file of this size justifies; some are left out"});
    library_.system = system_of(library_);
    if (library_.role == Role::host) library_.numpy = find_numpy_api(*elf);
    if (!options_.device_code) return std::move(library_);
    keep(read_device_code(*elf, file_, loan));
    if (library_.role != Role::host) return std::move(library_);
    if (auto cudart = find_static_cudart(*elf)) {
      library_.cudart_version = cudart->version;
      library_.cudart_evidence = cudart->evidence;
    }
    if (!options_.build_prefixes.empty())
      library_.build_paths = find_build_paths(*elf, options_.build_prefixes);
    return std::move(library_);
  }

  // Returns nothing if too few bytes are here.
  std::optional<LibraryFacts> read_start(std::uint64_t size) {
    Loan loan(memory_);
    const auto elf = read_elf_start(file_, base_name(library_.path), loan);
    if (!elf) return std::nullopt;
    library_.size = size;
    library_.in_part = true;
    describe(*elf);
    if (!Copier(*elf, memory_, library_).run({.symbols = true})) return std::nullopt;
    library_.system = system_of(library_);
    return std::move(library_);
  }

  // Adds up the object files of a static library.
  LibraryFacts read_static_library() {
    library_.kind = FileKind::archive;
    Fatbin all;
    Loan loan(memory_);
    const auto done = for_each_member(file_, [&](Bytes member) {
      if (!looks_like_elf(member)) return;
      const auto elf = read_elf(member, loan);
      if (!elf) return problem("elf-broken", elf.error());
      if (library_.machine.empty()) describe(*elf);
      append(all, read_device_code(*elf, member, loan));
    });
    if (!done) problem("archive-broken", done.error());
    library_.kind = FileKind::archive;
    if (library_.machine.empty()) library_.machine = "unknown";
    keep(all);
    return std::move(library_);
  }

  std::optional<LibraryFacts> read_loose() {
    Loan loan(memory_);
    const auto fatbin = read_loose_code(library_.path, file_, loan);
    if (!fatbin) return std::nullopt;
    library_.role = Role::device;
    library_.kind = looks_like_fatbin(file_) ? FileKind::fatbin : FileKind::ptx;
    library_.machine = "cuda";
    keep(*fatbin);
    return std::move(library_);
  }

 private:
  void problem(const char* id, const Error& error) { problems_.add(id, library_.path, error); }

  void describe(const Elf& elf) {
    library_.role = role_of(elf);
    library_.kind = kind_of(elf);
    library_.machine = machine_name(elf);
    library_.bits = elf.wide ? 64 : 32;
    library_.big_endian = elf.big_endian;
    library_.isa_level = elf.isa_level;
    library_.hardening = elf.hardening;
    library_.dynamic = elf.dynamic;
    library_.cut_off = elf.cut_off && !library_.in_part;
    library_.no_default_folders = elf.no_default_folders;
    library_.has_symbol_table = elf.has_symbol_table;
  }

  void keep(const Fatbin& fatbin) {
    for (const auto& error : fatbin.problems) problem("fatbin-broken", error);
    library_.device_code = sum_up(fatbin.codes);
    library_.fatbins = group_fatbins(fatbin);
    library_.toolkit = toolkit_of(fatbin.codes, memory_);
  }

  Bytes file_;
  const ScanOptions& options_;
  Allowance& memory_;
  ProblemList& problems_;
  LibraryFacts library_;
};

}  // namespace

bool is_torch_symbol(std::string_view name) {
  if (name.starts_with("_Z")) return mentions_torch(name);
  return is_torch_shim(name) || name.starts_with("THP");
}

std::optional<LibraryFacts> read_library(const std::string& path, Bytes file,
                                         const ScanOptions& options, Allowance& memory,
                                         ProblemList& problems) {
  LibraryReader reader(path, file, options, memory, problems);
  if (looks_like_elf(file)) return reader.read_elf_file();
  if (looks_like_archive(file)) return reader.read_static_library();
  return reader.read_loose();
}

std::optional<LibraryFacts> read_library_start(const std::string& path, Bytes start,
                                               std::uint64_t size, Allowance& memory) {
  ProblemList none;
  return LibraryReader(path, start, {}, memory, none).read_start(size);
}

}  // namespace wheelscope
