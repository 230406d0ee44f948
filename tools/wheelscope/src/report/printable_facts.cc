// Escapes the texts of facts.
#include "report/text.h"

#include "text/text.h"

namespace wheelscope {
namespace {

void escape(std::string& text) {
  text = printable(text);
}
void escape(std::vector<std::string>& list) {
  for (auto& text : list) escape(text);
}
void escape(std::set<std::string>& set) {
  std::set<std::string> escaped;
  for (const auto& text : set) escaped.insert(printable(text));
  set = std::move(escaped);
}
template <class Value>
void escape(std::map<std::string, Value>& map) {
  std::map<std::string, Value> escaped;
  for (auto& [key, value] : map) {
    if constexpr (requires { escape(value); }) escape(value);
    escaped.emplace(printable(key), std::move(value));
  }
  map = std::move(escaped);
}

void escape(LibraryFacts& library) {
  for (auto* text : {&library.path, &library.machine, &library.soname, &library.rpath,
                     &library.runpath, &library.interpreter, &library.toolkit})
    escape(*text);
  for (auto* list : {&library.needed, &library.debug_sections, &library.build_paths}) escape(*list);
  escape(library.version_needs);
  escape(library.version_definitions);
  escape(library.python_symbols);
  escape(library.torch_symbols);
  for (auto& code : library.device_code) {
    escape(code.target);
    escape(code.isa);
  }
  for (auto& symbol : library.symbols) {
    escape(symbol.name);
    escape(symbol.version);
    escape(symbol.library);
  }
}

void escape(WheelClaims& wheel) {
  for (auto* text :
       {&wheel.name, &wheel.version, &wheel.build, &wheel.variant, &wheel.variant_file_label,
        &wheel.generator, &wheel.requires_python, &wheel.summary, &wheel.license})
    escape(*text);
  for (auto* list : {&wheel.file_name_tags, &wheel.wheel_file_tags, &wheel.requires_dist,
                     &wheel.variant_properties})
    escape(*list);
}

}  // namespace

void make_printable(Facts& facts) {
  escape(facts.file);
  if (facts.wheel) escape(*facts.wheel);
  for (auto& library : facts.libraries) escape(library);
  for (auto& problem : facts.problems.listed) {
    escape(problem.place);
    escape(problem.what);
  }
}

}  // namespace wheelscope
