// Links without loading. Python opens an extension module with local scope: a symbol that neither
// the module nor anything it needs defines is not found, even if another library in the process has
// it.
#include "answers/link.h"

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <unordered_map>

#include "answers/owners.h"
#include "facts/facts.h"
#include "facts/wheel.h"
#include "loader/loader.h"
#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// Returns where a member lies once the wheel is installed (PEP 427, "the .data directory").
std::string installed_path(const Facts& facts, const std::string& member) {
  const std::string site = "/site-packages/";
  if (!facts.wheel) return member.find('/') == member.npos ? "./" + member : member;
  const auto path = wheelscope::installed_path(member);
  const auto slash = path.find('/');
  if (path != member || slash == path.npos || !path.substr(0, slash).ends_with(".data"))
    return site + path;
  const auto rest = path.substr(slash + 1);
  return "/" + (rest.starts_with("data/") ? rest.substr(5) : rest);
}

std::string normal(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

class Linker {
 public:
  Linker(const Item& wheel, const std::vector<Item>& providers)
      : wheel_(wheel), providers_(providers) {
    add_files(wheel.facts);
    for (const auto& provider : providers) {
      add_files(provider.facts);
      for (const auto& library : provider.facts.libraries) {
        if (!library.loadable()) continue;
        for (const auto& name : {base_name(library.path), library.soname}) {
          const auto path = installed_path(provider.facts, library.path);
          everywhere_.try_emplace({name, library.machine}, path);
          if (!provider.facts.wheel) system_.try_emplace({name, library.machine}, path);
        }
      }
    }
  }

  LinkReport run() {
    std::vector<const LibraryFacts*> machines;  // one library for each machine
    for (const auto& library : wheel_.facts.libraries) {
      if (!library.loadable()) continue;
      const bool is_new = std::ranges::none_of(
          machines, [&](const auto* other) { return same_machine(*other, library); });
      if (is_new) machines.push_back(&library);
    }
    for (const auto* machine : machines) link_all(*machine);
    std::ranges::sort(report_.missing, {}, [](const auto& missing) {
      return std::tie(missing.library, missing.symbol);
    });
    return std::move(report_);
  }

 private:
  void add_files(const Facts& facts) {
    for (const auto& library : facts.libraries) {
      if (!library.loadable()) continue;
      files_.try_emplace(normal(installed_path(facts, library.path)), &library);
      by_name_[base_name(library.path)].push_back(&library);
      if (!library.soname.empty() && library.soname != base_name(library.path))
        by_name_[library.soname].push_back(&library);
    }
  }

  void link_all(const LibraryFacts& machine) {
    Loader loader({.open =
                       [&](const std::string& path) {
                         const auto found = files_.find(normal(path));
                         return found == files_.end() ? nullptr : found->second;
                       },
                   .cached =
                       [&](const std::string& name) {
                         const auto& known = importing_ ? everywhere_ : system_;
                         const auto found = known.find({name, machine.machine});
                         return found == known.end() ? std::string() : found->second;
                       },
                   .machine = &machine,
                   .lib = machine.bits == 64 ? "lib64" : "lib",
                   .platform = machine.machine});
    importing_ = true;
    for (const auto& provider : providers_) {
      if (!provider.facts.wheel) continue;
      for (const auto& library : provider.facts.libraries) {
        if (library.loadable() && same_machine(machine, library))
          loader.open(installed_path(provider.facts, library.path));
      }
    }
    importing_ = false;
    loader_ = &loader;
    imported_ = loader.count();
    linked_.clear();
    // Modules first: a library that one of them needs is judged together with it.
    for (const bool modules : {true, false}) {
      for (const auto& library : wheel_.facts.libraries) {
        if (!library.loadable() || !same_machine(machine, library)) continue;
        if (modules ? library.python_module : !linked_.contains(&library)) link_root(library);
      }
    }
  }

  // Opens a library in a process that has only the providers, and looks at all that comes with it.
  void link_root(const LibraryFacts& root) {
    const auto opening = loader_->open(installed_path(wheel_.facts, root.path));
    absent_.clear();
    for (const auto* library : opening.scope)
      absent_.insert(library->absent.begin(), library->absent.end());
    for (const auto& missing : opening.missing_libraries) note_missing(missing);
    for (const auto& missing : opening.missing_versions) note_missing(missing);
    for (const auto* library : opening.scope) {
      if (!is_own(*library->facts)) continue;
      linked_.insert(library->facts);
      for (const auto& symbol : library->facts->symbols) {
        if (!symbol.defined) resolve(*library->facts, symbol, opening);
      }
    }
    loader_->unload_after(imported_);
  }

  bool is_own(const LibraryFacts& library) const {
    const auto& own = wheel_.facts.libraries;  // one vector, so an address inside it is enough
    return !own.empty() && std::less_equal{}(&own.front(), &library) &&
           std::less_equal{}(&library, &own.back());
  }

  void note_missing(const MissingLibrary& missing) {
    if (!missing.needed_by || !is_own(*missing.needed_by->facts)) return;
    if (is_platform_library(missing.name) || is_driver_library(missing.name)) return;
    report_.missing_libraries[missing.name].insert(missing.needed_by->facts->path);
    report_.missing_reasons.try_emplace(missing.name, why_missing(missing));
  }
  void note_missing(const MissingVersion& missing) {
    if (!is_own(*missing.needed_by->facts)) return;
    add_missing({.library = missing.needed_by->facts->path,
                 .symbol = "version " + missing.version,
                 .demangled = "version " + missing.version,
                 .expected_in = missing.library,
                 .why = "that library does not define this version"});
  }

  std::string why_missing(const MissingLibrary& missing) const {
    const auto found = by_name_.find(missing.name);
    if (found == by_name_.end()) return "neither the wheel nor a provider has it";
    for (const auto* candidate : found->second) {
      if (!same_machine(*candidate, *missing.needed_by->facts)) continue;
      return candidate->path + " is it, but no RPATH or RUNPATH leads there from " +
             missing.needed_by->facts->path + "; it works only if Python code loads it before";
    }
    return found->second.front()->path + " is for " + found->second.front()->machine;
  }

  bool is_absent(const std::string& name) const { return absent_.contains(name); }

  // True for a symbol that no file here has because the system, the driver or Python has it.
  bool is_left_to_others(const SymbolFact& symbol) {
    if (symbol.weak) return ++report_.weak;
    if (is_python_symbol(symbol.name)) return ++report_.python;
    if (!symbol.library.empty() && !loader_->already_loaded(symbol.library) &&
        is_platform_library(symbol.library))
      return ++report_.platform;
    if (!symbol.version.empty()) return false;
    const bool driver = std::ranges::any_of(absent_, is_driver_library);
    if (driver && is_driver_symbol(symbol.name)) return ++report_.driver;
    // Python itself needs the C library, so it is there for everything.
    const auto& symbols = platform_symbols();
    if (const auto known = symbols.find(symbol.name); known != symbols.end()) {
      const auto library = std::string(known->second);
      const bool c_library = library == "libc.so.6" || library == "libm.so.6";
      if (is_absent(library) || (c_library && !loader_->already_loaded(library)))
        return ++report_.platform;
    }
    const bool cxx = is_absent("libstdc++.so.6") || is_absent("libgcc_s.so.1") ||
                     is_absent("libc++.so.1") || is_absent("libc++abi.so.1");
    if (cxx && is_cxx_runtime_symbol(symbol.name)) return ++report_.platform;
    return false;
  }

  void resolve(const LibraryFacts& library, const SymbolFact& symbol, const Opening& opening) {
    if (!resolved_.insert({&symbol, opening.root ? opening.root->facts : nullptr}).second) return;
    if (const auto binding = loader_->bind(symbol, opening); binding.library) {
      if (counted_.insert(&symbol).second) ++report_.resolved[base_name(binding.library->path)];
      return;
    }
    if (!counted_.insert(&symbol).second) {
      if (symbol.weak || is_python_symbol(symbol.name)) return;
    }
    if (is_left_to_others(symbol)) return;
    MissingSymbol missing{.library = library.path,
                          .symbol = spelled(symbol.name, symbol.version, false),
                          .demangled = readable(symbol.name),
                          .expected_in = symbol.library};
    if (missing.expected_in.empty()) missing.expected_in = expected_provider(symbol.name);
    missing.why = why_unresolved(symbol, opening);
    add_missing(std::move(missing));
  }

  // Nobody reads more than the first thousands, and a name can take long to demangle.
  std::string readable(const std::string& name) const {
    constexpr std::size_t most = 2000;
    return report_.missing.size() < most ? demangle(name) : name;
  }

  void add_missing(MissingSymbol missing) {
    if (missing_.insert({missing.library, missing.symbol}).second)
      report_.missing.push_back(std::move(missing));
  }

  std::string why_unresolved(const SymbolFact& symbol, const Opening& opening) {
    if (definers_.empty()) {
      for (const auto& [path, library] : files_) {
        for (const auto& other : library->symbols) {
          if (other.defined) definers_[other.name].push_back(library);
        }
      }
    }
    if (const auto found = definers_.find(symbol.name); found != definers_.end()) {
      for (const auto* definer : found->second) {
        for (const auto* library : opening.scope) {
          if (library->facts == definer) return "the library has it in another version";
        }
      }
      return base_name(found->second.front()->path) +
             " has it, but nothing that this library NEEDs leads there";
    }
    for (const auto& name : absent_) {
      if (!is_platform_library(name) && !is_driver_library(name))
        return "not found; not among the providers: " + name;
    }
    return "no library in reach defines it";
  }

  // Returns the library that should have a symbol which none has.
  std::string expected_provider(const std::string& name) const {
    if (auto library = torch_library_of(name); !library.empty()) return library;
    std::vector<std::string> candidates;
    std::ranges::copy_if(absent_, std::back_inserter(candidates), [](const auto& library) {
      return !is_platform_library(library) && !is_driver_library(library);
    });
    return candidates.size() == 1 ? candidates.front() : "";
  }

  const Item& wheel_;
  const std::vector<Item>& providers_;
  std::unordered_map<std::string, const LibraryFacts*> files_;  // by path
  std::unordered_map<std::string, std::vector<const LibraryFacts*>> by_name_;
  // Name and machine -> path, for libraries that every search finds and for all that providers
  // have. Providers are packages that work, so their libraries find each other.
  std::map<std::pair<std::string, std::string>, std::string> system_, everywhere_;
  bool importing_ = false;
  Loader* loader_ = nullptr;
  std::size_t imported_ = 0;      // how many libraries the providers have brought
  std::set<std::string> absent_;  // NEEDED names that lead nowhere in the current scope
  std::set<const LibraryFacts*> linked_;
  std::set<std::pair<const SymbolFact*, const LibraryFacts*>> resolved_;
  std::set<const SymbolFact*> counted_;
  std::set<std::pair<std::string, std::string>> missing_;
  std::unordered_map<std::string_view, std::vector<const LibraryFacts*>> definers_;
  LinkReport report_;
};

}  // namespace

LinkReport link(const Item& wheel, const std::vector<Item>& providers) {
  return Linker(wheel, providers).run();
}

}  // namespace wheelscope
