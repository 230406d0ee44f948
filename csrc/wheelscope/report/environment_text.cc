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
  constexpr std::size_t most = 5;
  for (std::size_t i = 0; i < std::min(verdict.broken.size(), most); ++i) {
    const auto& broken = verdict.broken[i];
    lines.add("library", printable(broken.path));
    lines.add("says", printable(broken.explanation.symptom.message));
    for (const auto& reason : broken.explanation.because) lines.add("because", printable(reason));
    for (const auto& way : broken.explanation.mend) lines.add("mend", printable(way));
  }
  if (verdict.broken.size() > most)
    lines.add("library", "and " + std::to_string(verdict.broken.size() - most) + " more");
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
    if (verdict.is_sound())
      ++sound;
    else
      text += verdict_text(verdict, style);
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
