// Links without loading. The loader searches a library's own NEEDED tree; what lies in no tree is
// not found, even if some other library in the process has it, because Python loads extensions with
// local scope.
#include "link.h"

#include <cxxabi.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "dump.h"
#include "tables.h"

namespace wheelscope {
namespace {

// The driver's libraries: every machine with an NVIDIA GPU has them, no package does.
bool is_driver_library(std::string_view name) {
  return name == "libcuda.so.1" || name == "libnvidia-ml.so.1" || name == "libnvcuvid.so.1" ||
         name == "libnvidia-encode.so.1";
}

bool is_platform_library(const std::string& name) {
  return platform_table("manylinux").libraries.contains(name) || name.starts_with("ld-linux") ||
         name.starts_with("libc.musl-") || is_driver_library(name);
}

// Part of the C++ runtime: std:: and what compilers call on their own. Some linkers leave its
// version out.
bool is_cxx_runtime_symbol(std::string_view name) {
  for (const std::string_view start :
       {"_ZSt", "_ZNSt", "_ZNKSt", "_ZTISt", "_ZTVSt", "_ZTSSt", "_ZTINSt", "_ZTVNSt", "_Zna",
        "_Znw", "_Zda", "_Zdl", "__cxa_", "__gxx_", "_ZTVN10__cxxabiv1"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

bool is_python_symbol(std::string_view name) {
  return name.starts_with("Py") || name.starts_with("_Py");
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

class Linker {
 public:
  Linker(const Item& wheel, const std::vector<Item>& providers) : wheel_(wheel) {
    add(wheel);
    for (const auto& provider : providers) add(provider);
  }

  LinkReport run() {
    for (const auto& library : wheel_.libraries) {
      if (library.kind == "shared" || library.kind == "executable") link_library(library);
    }
    std::ranges::sort(report_.missing, {}, [](const auto& missing) {
      return std::tie(missing.library, missing.symbol);
    });
    return std::move(report_);
  }

 private:
  struct Definition {
    const LibraryFacts* library;
    const SymbolFact* symbol;
  };

  void add(const Item& item) {
    for (const auto& library : item.libraries) {
      by_name_.try_emplace(base_name(library.path), &library);
      if (!library.soname.empty()) by_name_.try_emplace(library.soname, &library);
      for (const auto& symbol : library.symbols) {
        if (symbol.defined) definitions_[symbol.name].push_back({&library, &symbol});
      }
    }
  }

  struct Scope {
    std::set<const LibraryFacts*> libraries;
    bool platform = false;            // some of it is the platform's own
    std::vector<std::string> absent;  // NEEDED, but nobody has it
  };

  Scope scope_of(const LibraryFacts& root) {
    Scope scope;
    std::vector<const LibraryFacts*> waiting{&root};
    while (!waiting.empty()) {
      const auto* library = waiting.back();
      waiting.pop_back();
      if (!scope.libraries.insert(library).second) continue;
      for (const auto& name : library->needed) {
        if (auto found = by_name_.find(name); found != by_name_.end())
          waiting.push_back(found->second);
        else if (is_platform_library(name))
          scope.platform = true;
        else {
          scope.absent.push_back(name);
          if (library == &root) report_.missing_libraries[name].insert(root.path);
        }
      }
    }
    return scope;
  }

  void link_library(const LibraryFacts& library) {
    const auto scope = scope_of(library);
    for (const auto& symbol : library.symbols) {
      if (!symbol.defined) resolve(library, symbol, scope);
    }
  }

  static bool version_fits(const SymbolFact& wanted, const Definition& definition) {
    if (wanted.version.empty()) return definition.symbol->default_version;
    return definition.symbol->version == wanted.version ||
           definition.library->version_definitions.empty();
  }

  void resolve(const LibraryFacts& library, const SymbolFact& symbol, const Scope& scope) {
    const auto found = definitions_.find(symbol.name);
    const Definition* elsewhere = nullptr;
    bool other_version = false;
    if (found != definitions_.end()) {
      for (const auto& definition : found->second) {
        const bool reached = scope.libraries.contains(definition.library);
        const bool fits = version_fits(symbol, definition);
        if (reached && fits) {
          ++report_.resolved[base_name(definition.library->path)];
          return;
        }
        if (reached)
          other_version = true;
        else if (fits)
          elsewhere = &definition;
      }
    }
    if (symbol.weak) return void(++report_.weak);
    const bool provider_known = by_name_.contains(symbol.library);
    if (!symbol.library.empty() && !provider_known && is_platform_library(symbol.library))
      return void(++report_.platform);
    if (symbol.version.empty() && scope.platform && is_cxx_runtime_symbol(symbol.name)) {
      return void(++report_.platform);
    }
    if (is_python_symbol(symbol.name)) return void(++report_.python);
    MissingSymbol missing{.library = library.path,
                          .symbol = spelled(symbol),
                          .demangled = demangle(symbol.name),
                          .expected_in = symbol.library};
    if (missing.expected_in.empty()) missing.expected_in = expected_provider(symbol.name, scope);
    if (other_version)
      missing.why = "the library has it in another version";
    else if (elsewhere)
      missing.why = base_name(elsewhere->library->path) +
                    " has it, but nothing that this library NEEDs leads there";
    else if (!scope.absent.empty())
      missing.why = "not found; not among the providers: " + scope.absent.front();
    else
      missing.why = "no library in reach defines it";
    report_.missing.push_back(std::move(missing));
  }

  // Which library ought to have a symbol that none has: known shims by table, C++ names by
  // namespace.
  static std::string expected_provider(const std::string& name, const Scope& scope) {
    if (auto shim = torch_shims().find(name); shim != torch_shims().end())
      return std::string(shim->second.library);
    auto mentions = [&](std::string_view mangled) {
      return name.starts_with("_Z") && name.find(mangled) != name.npos;
    };
    if (mentions("N3c104cuda")) return "libc10_cuda.so";
    if (mentions("N2at4cuda")) return "libtorch_cuda.so";
    if (name.starts_with("THP") || mentions("N5torch8autogradL") || mentions("THPVariable"))
      return "libtorch_python.so";
    if (name.starts_with("_ZN3c10") || name.starts_with("_ZNK3c10") ||
        name.starts_with("_ZTIN3c10") || name.starts_with("_ZTVN3c10"))
      return "libc10.so";
    if (mentions("N2at") || mentions("N5torch") || mentions("N3c10") ||
        name.starts_with("aoti_torch_") || name.starts_with("torch_"))
      return "libtorch_cpu.so";
    return scope.absent.size() == 1 ? scope.absent.front() : "";
  }

  const Item& wheel_;
  std::unordered_map<std::string, const LibraryFacts*> by_name_;
  std::unordered_map<std::string_view, std::vector<Definition>> definitions_;
  LinkReport report_;
};

}  // namespace

std::string demangle(const std::string& symbol) {
  constexpr std::size_t longest = 4096;  // what a demangler might make of more is not for reading
  if (!symbol.starts_with("_Z") || symbol.size() > longest) return symbol;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : symbol;
}

LinkReport link(const Item& wheel, const std::vector<Item>& providers) {
  return Linker(wheel, providers).run();
}

}  // namespace wheelscope
