// Tells by its name whose a module, header, library, program, package or function is that is not
// there.
#include <algorithm>
#include <cctype>

#include "answers/explain.h"
#include "answers/owners.h"
#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// The next more general name: google.protobuf -> google, openssl/ssl.h -> openssl/,
// libpq.so.5 -> libpq.so. Nothing where there is none.
std::string more_general(const std::string& kind, std::string name) {
  if (kind == "header" && name.ends_with('/')) name.pop_back();
  if (kind == "library") {
    const auto end = name.find(".so.");
    return end == name.npos ? "" : name.substr(0, end + 3);
  }
  const auto end = name.rfind(kind == "header" ? '/' : '.');
  if (kind == "program" || kind == "package" || end == name.npos) return {};
  return name.substr(0, kind == "header" ? end + 1 : end);
}

// Returns what the table says of a name. A row that does not say whose it is has modules that are
// called like their distribution.
std::optional<Provider> provider_of(const std::string& kind, std::string name) {
  const auto& known = providers().at(kind);
  for (; !name.empty(); name = more_general(kind, name)) {
    if (const auto found = known.find(name); found != known.end()) {
      auto provider = found->second;
      if (provider.of.empty()) provider.pip = found->first;
      return provider;
    }
  }
  return std::nullopt;
}

// The function that a linker misses, as its headers call it: sqlite3_open for __imp_sqlite3_open of
// Windows and _sqlite3_open of macOS, cv::Mat::create for a whole signature.
std::string function_of(const Symptom& symptom) {
  const bool macos = symptom.message.contains("for architecture");
  std::string_view name = symptom.symbol;
  const auto signature = symptom.part("signature");
  if (!signature.empty()) {
    name = signature;
    name = name.substr(0, name.find('('));
    name = name.substr(name.rfind(' ') + 1);
  }
  for (const std::string_view beginning : {"typeinfo for ", "vtable for ", "__imp_"}) {
    if (name.starts_with(beginning)) name.remove_prefix(beginning.size());
  }
  if (macos && name.starts_with('_')) name.remove_prefix(1);
  return std::string(name);
}

std::optional<Provider> provider_of_function(const Symptom& symptom) {
  const auto name = function_of(symptom);
  const auto* kind = symptom.message.contains("LNK")                ? "symbol-windows"
                     : symptom.message.contains("for architecture") ? "symbol-macos"
                                                                    : "symbol";
  const auto* own = provider_of_symbol(name, kind);
  const auto* found = own ? own : provider_of_symbol(name, "symbol");
  return found ? std::optional(*found) : std::nullopt;
}

// The package of a library that a linker asks for as -lNAME.
std::optional<Provider> provider_of_link(const std::string& name) {
  const auto plain = lower(name);
  for (const auto& candidate : {plain, "lib" + plain, plain.substr(0, plain.find('_'))}) {
    if (auto found = provider_of("package", candidate)) return found;
  }
  return std::nullopt;
}

// What the message says that is missing, and of which kind it is.
std::pair<std::string, std::string> missing_thing(const Symptom& symptom) {
  for (const auto* kind : {"module", "header", "program", "package", "lib"}) {
    if (const auto name = symptom.part(kind); !name.empty()) return {kind, name};
  }
  if (!symptom.symbol.empty()) return {"symbol", symptom.symbol};
  return {"library", symptom.needs};
}

// True for the name of a program; false for that of a file with contents: README.md, /data/a.
bool is_program(const std::string& path) {
  if (path.find_first_of("/\\") != path.npos && !path.contains("bin/")) return false;
  const auto ending = path.substr(std::min(path.rfind('.'), path.size() - 1) + 1);
  return !path.contains('.') || ending == "exe" || ending == "sh" ||
         std::ranges::none_of(ending, [](unsigned char c) { return std::isalpha(c) != 0; });
}

}  // namespace

void ask_provider(const Asked&, Explanation& explanation) {
  auto [kind, name] = missing_thing(explanation.symptom);
  if (kind == "library" || kind == "program") name = base_name(name);
  if (kind == "program" && is_program(explanation.symptom.part(kind)))
    explanation.symptom.set("tool", name);
  if (kind == "library" && name.ends_with(".dylib")) name.resize(name.find('.'));
  if (kind == "library" && !name.contains(".so"))  // as ctypes and cffi are asked for it: cairo
    name = (name.starts_with("lib") ? "" : "lib") + name + ".so";
  if (kind == "package") {  // of CMake or pkg-config: OpenMP_CXX is a part of OpenMP
    name = lower(name);
    for (const auto* part : {"_c", "_cxx", "_cuda", "_fortran"}) {
      if (!name.ends_with(part)) continue;
      name.resize(name.size() - std::string_view(part).size());
      explanation.symptom.set("package",
                              explanation.symptom.part("package").substr(0, name.size()));
    }
  }
  auto provider = kind == "symbol" ? provider_of_function(explanation.symptom)
                  : kind == "lib"  ? provider_of_link(name)
                                   : provider_of(kind, name);
  if (!provider && kind == "library") provider = provider_of(kind, lower(name));  // PortAudio
  if (!provider) return;
  explanation.owner = trim(provider->of.substr(0, provider->of.find_first_of(":;(")));
  explanation.symptom.set("of", std::string(provider->of));
  explanation.symptom.set("pip", std::string(provider->pip));
  explanation.symptom.set("apt", std::string(provider->apt));
  explanation.symptom.set("brew", std::string(provider->brew));
}

}  // namespace wheelscope
