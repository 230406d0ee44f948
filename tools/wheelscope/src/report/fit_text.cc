// Writes what `fit` has to say: a table of files, then the one to take.
#include "report/reason_text.h"
#include "report/text.h"
#include "text/text.h"

namespace wheelscope {
namespace {

std::string coloured(Fits fits, const Style& style) {
  const auto word = padded(name_of(fits), 8);
  return fits == Fits::works     ? style.good(word)
         : fits == Fits::depends ? style.warn(word)
                                 : style.bad(word);
}

std::string read_text(const FitVerdict& verdict) {
  if (verdict.read == 0) return {};
  if (verdict.read >= verdict.size) return "all " + human_size(verdict.size) + " read";
  return human_size(verdict.read) + " of " + human_size(verdict.size) + " read";
}

}  // namespace

std::string fit_text(const FitAnswer& answer, const Style& style) {
  auto text = style.bold(printable(answer.asked)) + "\n";
  // Files for other systems and Pythons are of interest where there are no others.
  const auto is_elsewhere = [](const FitVerdict& verdict) {
    return verdict.read == 0 &&
           (verdict.obstacle == Obstacle::system || verdict.obstacle == Obstacle::python);
  };
  const bool all_elsewhere = std::ranges::all_of(answer.verdicts, is_elsewhere);
  std::size_t width = 0, shown = 0;
  for (const auto& verdict : answer.verdicts) {
    if (all_elsewhere || !is_elsewhere(verdict)) width = std::max(width, verdict.file.size());
  }
  for (const auto& verdict : answer.verdicts) {
    constexpr std::size_t most = 12;
    if ((!all_elsewhere && is_elsewhere(verdict)) || shown == most) continue;
    ++shown;
    std::vector<std::string> words;
    for (const auto& word : {reason_text(verdict.reason), read_text(verdict)}) {
      if (!word.empty()) words.push_back(printable(word));
    }
    text += "  " + padded(printable(verdict.file), width) + "  " + coloured(verdict.fits, style) +
            joined(words, "; ") + "\n";
    for (const auto& note : verdict.notes) text += "      " + style.dim(printable(note)) + "\n";
  }
  if (answer.verdicts.size() > shown)
    text += "  and " + counted(answer.verdicts.size() - shown, "file") +
            " of the same versions, for other systems or Pythons\n";
  Lines lines(style);
  if (answer.not_judged)
    lines.add("not judged", counted(answer.not_judged, "file") + " of other versions");
  for (const auto& note : answer.notes) lines.add("note", printable(note));
  if (!answer.take.empty()) {
    lines.add("take", style.good(printable(answer.take)));
    lines.add("type", printable(answer.command));
  } else if (!answer.sdist.empty()) {
    lines.add("take", "no wheel: only " + printable(answer.sdist) +
                          " is left, which would be compiled here");
  } else if (!answer.nearest.empty()) {
    lines.add("nearest", printable(answer.nearest));
    lines.add("change", printable(change_text(answer.obstacle)));
  }
  return text + lines.text;
}

}  // namespace wheelscope
