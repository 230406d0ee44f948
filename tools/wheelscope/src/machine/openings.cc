// Follows calls from the files' own statements to the functions that open libraries. Functions of
// the same name count as one.
#include "machine/python_source.h"

#include <map>

#include "text/text.h"

namespace wheelscope {
namespace {

struct Routine {
  std::set<std::string> calls, optional_calls, libraries, modules, elsewhere;
  bool opens = false, opens_optionally = false, opens_modules = false;
};

using Names = std::set<std::string>;
using Graph = std::map<std::string, Names>;

Names reached(const Graph& graph, Names start) {
  std::vector<std::string> waiting(start.begin(), start.end());
  while (!waiting.empty()) {
    const auto next = graph.find(waiting.back());
    waiting.pop_back();
    if (next == graph.end()) continue;
    for (const auto& name : next->second) {
      if (start.insert(name).second) waiting.push_back(name);
    }
  }
  return start;
}

}  // namespace

Openings::Openings(const std::vector<const PythonSource*>& sources,
                   const std::set<std::string>& libraries) {
  std::map<std::string, Routine> routines;
  bool describes_operators = false;
  std::size_t file = 0;
  std::vector<std::string> files;  // what stands outside of functions, file by file
  for (const auto* source : sources) {
    describes_operators |= source->describes_operators;
    files.push_back("file " + std::to_string(file++));
    for (const auto& [name, scope] : source->scopes) {
      auto& routine = routines[name.empty() ? files.back() : name];
      routine.opens |= scope.opens;
      routine.opens_modules |= scope.opens_modules;
      routine.opens_optionally |= scope.opens_optionally;
      for (const auto& call : scope.calls)
        (call.optional ? routine.optional_calls : routine.calls).insert(call.name);
      for (const auto& text : scope.texts) {
        const auto name_in_text = base_name(text), stem = stem_of(text);
        // The name of a module, such as numpy.core._tests, for a function that imports it.
        if (const auto last = name_in_text.substr(name_in_text.rfind('.') + 1);
            last != stem && libraries.contains(last))
          routine.modules.insert(last);
        if (!libraries.contains(stem)) {
          if (text.starts_with("lib") && text.find(".so") != text.npos)
            routine.elsewhere.insert(text);
          continue;
        }
        routine.libraries.insert(stem);
        if (name_in_text.find(".so") != name_in_text.npos) routine.libraries.insert(stem + ".so");
      }
    }
  }
  Graph calls, needed_by, called_by;
  Names opening, opening_somehow;
  for (const auto& [name, routine] : routines) {
    if (routine.opens) opening.insert(name);
    if (routine.opens || routine.opens_optionally) opening_somehow.insert(name);
    for (const auto& callee : routine.calls) {
      calls[name].insert(callee);
      needed_by[callee].insert(name);
      called_by[callee].insert(name);
    }
    for (const auto& callee : routine.optional_calls) called_by[callee].insert(name);
  }
  const auto run = reached(calls, {files.begin(), files.end()});
  for (const auto& name : run) {
    const auto found = routines.find(name);
    if (found == routines.end()) continue;
    const auto& routine = found->second;
    mentioned_.insert(routine.modules.begin(), routine.modules.end());
    if (routine.opens) elsewhere_.insert(routine.elsewhere.begin(), routine.elsewhere.end());
    for (const auto& library : found->second.libraries) {
      mentioned_.insert(library);
      if (found->second.opens_modules) opened_.insert(library + ".so");
    }
  }
  const auto lead_to_opening = reached(needed_by, opening);
  for (const auto& name : reached(called_by, opening_somehow)) {
    const auto& routine = routines.at(name);
    // torch looks up described operators, so a library must have brought them.
    const bool must = run.contains(name) && (lead_to_opening.contains(name) || describes_operators);
    named_.insert(routine.libraries.begin(), routine.libraries.end());
    if (must) opened_.insert(routine.libraries.begin(), routine.libraries.end());
    const bool opens_itself = routine.opens || (describes_operators && routine.opens_optionally);
    if (routine.libraries.empty() && run.contains(name) && opens_itself) opens_unnamed_ = true;
  }
}

}  // namespace wheelscope
