// Writes the answer of `env` as text and as JSON.
#include <map>

#include "report/json.h"
#include "report/text.h"
#include "text/text.h"

namespace wheelscope {

std::string unmet_text(const UnmetRequirement& unmet) {
  return unmet.by + (unmet.by.empty() ? "" : " ") + "requires " +
         (unmet.of_python ? "Python " : "") + unmet.requirement +
         (unmet.installed.empty()
              ? ", which is not installed"
              : (unmet.of_python ? "; this is " : "; installed is ") + unmet.installed);
}

namespace {

void add_files(const DistributionVerdict& verdict, Lines& lines) {
  constexpr std::size_t most = 3;  // of each kind
  std::map<FileState, std::vector<std::string>> states;
  for (const auto& [state, path] : verdict.files) states[state].push_back(printable(path));
  for (const auto& [state, paths] : states) lines.add_list(name_of(state), paths, most);
  const auto unreadable = states.count(FileState::unreadable);
  if (unreadable)
    lines.add("fix", printable("as their owner: chmod -R a+rX " + verdict.distribution.folder));
  if (states.size() > unreadable) lines.add("fix", printable(reinstallation(verdict.distribution)));
}

std::string verdict_text(const DistributionVerdict& verdict, const Style& style) {
  const auto& name = verdict.distribution.name;
  const auto& version = verdict.distribution.version;
  auto text = style.bold(printable(name + " " + version)) + "  " +
              (verdict.loads == Loads::no        ? style.bad("does not load")
               : verdict.loads == Loads::depends ? style.warn("depends on Python code")
                                                 : style.good("loads")) +
              "\n";
  Lines lines(style);
  if (!verdict.imports.empty())
    lines.add("because", "it imports " + verdict.imports + ", which does not load" +
                             (verdict.loads == Loads::depends ? " for sure, or not always" : ""));
  if (const auto& reason = verdict.refusal.reason)
    lines.add(verdict.refusal.need == Need::never ? "optional" : "because",
              printable(reason_text(reason)));
  constexpr std::size_t most = 5;
  std::size_t needed = 0;
  std::vector<std::string> optional;
  for (const auto& broken : verdict.broken) {
    const auto& explanation = broken.explanation;
    if (broken.need == Need::never) {
      const bool doubtful = broken.trouble == Trouble::torch_layout;
      optional.push_back(printable(base_name(broken.path) +
                                   (doubtful                         ? " is doubtful"
                                    : broken.loads == Loads::depends ? " does not load by itself"
                                                                     : " does not load") +
                                   ": " + explanation.symptom.message));
    } else if (++needed <= most) {
      lines.add("library", printable(broken.path));
      lines.add("says", printable(explanation.symptom.message));
      for (const auto& reason : explanation.because) lines.add("because", printable(reason));
      if (broken.need == Need::depends)
        lines.add("open",
                  "whether the package imports it, as it does so under a condition that "
                  "was not evaluated, in a function, or from machine code");
      for (const auto& way : explanation.fixes) lines.add("fix", printable(way));
    }
  }
  if (needed > most) lines.add("library", "and " + std::to_string(needed - most) + " more");
  lines.add_list("optional", optional);
  for (const auto& one : verdict.unmet) lines.add("unmet", printable(unmet_text(one)));
  add_files(verdict, lines);
  for (const auto& [name, error] : verdict.imported) {
    if (!error.empty())
      lines.add("import", printable(name + " fails: " + error) +
                              (verdict.loads == Loads::no ? "" : "  (not foreseen)"));
  }
  if (verdict.loads == Loads::no && !verdict.imported.empty() && !verdict.fails_to_import())
    lines.add("import", "works, against what was foreseen");
  std::vector<std::string> unserved;
  unserved.reserve(verdict.unserved.size());
  for (const auto& gpu : verdict.unserved)
    unserved.push_back(printable(base_name(gpu.library) + " has no code for " + gpu.gpu + " (" +
                                 gpu.capability + "): a call of its kernels fails"));
  lines.add_list("GPUs", unserved);
  return text + lines.text;
}

}  // namespace

std::string environment_text(const std::vector<DistributionVerdict>& verdicts, const Style& style) {
  std::string text;
  std::uint64_t sound = 0, opened = 0;
  for (const auto& verdict : verdicts) {
    opened += verdict.opened;
    if (verdict.is_sound()) ++sound;
    if (!verdict.is_sound() || !verdict.broken.empty()) text += verdict_text(verdict, style);
  }
  return text + counted(verdicts.size(), "distribution") + " with libraries, " +
         counted(opened, "module") + " opened: " + std::to_string(sound) + " sound\n";
}

std::string searches_text(const std::vector<Search>& searches, const Style& style) {
  std::string text;
  for (const auto& search : searches) {
    text += style.bold(printable(search.library)) + "\n";
    if (search.already_loaded)
      text += "  " + style.good("loaded already") + "  " + printable(search.found) + "\n";
    for (const auto& step : search.steps) {
      const auto found = step.result == SearchStep::Result::found;
      const auto word = padded(name_of(step.result), 14);
      text += "  " + (found ? style.good(word) : style.dim(word)) + "  " + printable(step.path) +
              "  " + style.dim(printable(step.place)) + "\n";
    }
    if (search.found.empty()) text += "  " + style.bad("found nowhere") + "\n";
  }
  return text;
}

Json to_json(const Refusal& refusal) {
  const auto& [why, who, what, version, here] = refusal.reason;
  if (!refusal.reason) return nullptr;
  auto where = [&](Why wanted) { return or_null(why == wanted ? what : ""); };
  const bool is_module =
      why == Why::module_absent || why == Why::module_named || why == Why::module_compared;
  return {{"file", who},
          {"module", or_null(is_module                 ? what
                             : why == Why::name_absent ? here
                                                       : "")},
          {"name", or_null(why == Why::name_absent || why == Why::cffi_name_absent ? what : "")},
          {"library", where(Why::library_opened)},
          {"need", name_of(refusal.need)}};
}

Json to_json(const UnmetRequirement& unmet) {
  return unmet_text(unmet);
}

FIELDS(BrokenLibrary, path, loads, trouble, need, explanation)
FIELDS(OddFile, state, path)
FIELDS(ImportResult, name, error)
FIELDS(UnservedGpu, library, gpu, capability)
FIELDS(SearchStep, place, path, result)
FIELDS(Search, library, already_loaded, found, steps)

Json to_json(const DistributionVerdict& of) {
  Json json{{"name", of.distribution.name}, {"version", of.distribution.version}};
  ADD_FIELDS(libraries, opened, loads, imports, refusal, broken, files, imported, unmet, unserved)
  return json;
}

}  // namespace wheelscope
