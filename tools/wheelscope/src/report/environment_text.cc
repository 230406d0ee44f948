// Writes what `env` has to say.
#include "report/text.h"
#include "text/text.h"

namespace wheelscope {
namespace {

std::string verdict_text(const DistributionVerdict& verdict, const Style& style) {
  const auto& name = verdict.distribution.name;
  const auto& version = verdict.distribution.version;
  auto text = style.bold(printable(name + " " + version)) + "  " +
              (verdict.loads == Loads::no        ? style.bad("does not load")
               : verdict.loads == Loads::depends ? style.warn("loads if Python code helps")
                                                 : style.good("loads")) +
              "\n";
  Lines lines(style);
  if (!verdict.imports.empty())
    lines.add("because", "it imports " + verdict.imports + ", which does not load");
  constexpr std::size_t most = 5;
  std::size_t needed = 0;
  std::vector<std::string> optional;
  for (const auto& broken : verdict.broken) {
    const auto& explanation = broken.explanation;
    if (broken.optional) {
      optional.push_back(printable(base_name(broken.path) + " does not load" +
                                   (broken.loads == Loads::depends ? " by itself" : "") + ": " +
                                   explanation.symptom.message));
    } else if (++needed <= most) {
      lines.add("library", printable(broken.path));
      lines.add("says", printable(explanation.symptom.message));
      for (const auto& reason : explanation.because) lines.add("because", printable(reason));
      for (const auto& way : explanation.fixes) lines.add("fix", printable(way));
    }
  }
  if (needed > most) lines.add("library", "and " + std::to_string(needed - most) + " more");
  lines.add_list("optional", optional);
  lines.add_list("unmet", verdict.unmet);
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

}  // namespace wheelscope
