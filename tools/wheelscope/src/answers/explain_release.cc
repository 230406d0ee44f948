// Tells which release of a package brought or removed a name that is not there.
#include "answers/explain.h"
#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {

bool set_release(Symptom& symptom) {
  if (const auto path = symptom.part("path"); !path.empty()) {
    const auto dot = path.rfind('.');
    if (dot == path.npos) return false;
    symptom.set("module", path.substr(0, dot));
    symptom.set("name", path.substr(dot + 1));
  }
  // A type of model, as configurations name it, is a module of transformers.
  if (const auto model = symptom.part("model"); !model.empty()) {
    symptom.set("module", "transformers.models");
    symptom.set("name", model);
  }
  const auto module = symptom.part("module"), name = symptom.part("name");
  // A folder without __init__.py, or a module that is still being imported, is no release.
  for (const auto* other : {"(unknown location)", "partially initialized module"}) {
    if (symptom.message.contains(other)) return false;
  }
  const auto found = attributes().find({module, name});
  if (found == attributes().end()) return false;
  const auto& [distribution, brought, removed] = found->second;
  const std::string of(distribution), first(brought), gone(removed);
  symptom.set("distribution", of);
  symptom.set("brought", first);
  symptom.set("removed", gone);
  symptom.set("wanted", of + (first.empty() ? "" : ">=" + first) +
                            (first.empty() || gone.empty() ? "" : ",") +
                            (gone.empty() ? "" : "<" + gone));
  symptom.set("change",
              gone.empty()
                  ? of + " has it since " + first + ", and an older one, or none, was imported"
              : first.empty() ? of + " " + gone + " removed it"
                              : of + " had it from " + first + " on, and " + gone + " removed it");
  return true;
}

void ask_release(const Asked& asked, Explanation& explanation) {
  const auto distribution = explanation.symptom.part("distribution");
  explanation.owner = distribution;
  if (distribution == "torch" && asked.machine && asked.machine->torch) {
    explanation.say("torch " + asked.machine->torch->version + " is installed here");
    return;
  }
  for (const auto& one : asked.installed) {
    if (one.name == distribution)
      explanation.say(one.name + " " + one.version + " is installed here");
  }
}

}  // namespace wheelscope
