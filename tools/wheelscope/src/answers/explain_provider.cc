// Tells by its name whose a module, header, library, program or package is that is not there.
#include "answers/explain.h"
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

const Provider* provider_of(const std::string& kind, std::string name) {
  const auto& known = providers().at(kind);
  for (; !name.empty(); name = more_general(kind, name)) {
    if (const auto found = known.find(name); found != known.end()) return &found->second;
  }
  return nullptr;
}

// What the message says that is missing, and of which kind it is.
std::pair<std::string, std::string> missing_thing(const Symptom& symptom) {
  for (const auto* kind : {"module", "header", "program", "package"}) {
    if (const auto name = symptom.part(kind); !name.empty()) return {kind, name};
  }
  return {"library", symptom.needs};
}

}  // namespace

void ask_provider(const Asked&, Explanation& explanation) {
  auto [kind, name] = missing_thing(explanation.symptom);
  if (kind == "library" || kind == "program") name = base_name(name);
  if (kind == "library" && name.ends_with(".dylib")) name.resize(name.find('.'));
  if (kind == "library" && !name.contains(".so"))  // as ctypes and cffi are asked for it: cairo
    name = (name.starts_with("lib") ? "" : "lib") + name + ".so";
  if (kind == "package") {  // of CMake or pkg-config: OpenMP_CXX is a part of OpenMP
    name = lower(name);
    for (const auto* part : {"_c", "_cxx", "_cuda", "_fortran"}) {
      if (name.ends_with(part)) name.resize(name.size() - std::string_view(part).size());
    }
  }
  const auto* provider = provider_of(kind, name);
  if (!provider && kind == "library") provider = provider_of(kind, lower(name));  // PortAudio
  if (!provider) return;
  explanation.owner = trim(provider->of.substr(0, provider->of.find_first_of(":;(")));
  explanation.symptom.set("of", std::string(provider->of));
  explanation.symptom.set("pip", std::string(provider->pip));
  explanation.symptom.set("apt", std::string(provider->apt));
  explanation.symptom.set("brew", std::string(provider->brew));
}

}  // namespace wheelscope
