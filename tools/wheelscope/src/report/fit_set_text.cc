// Writes a set of packages, or why there is none.
#include "report/reason_text.h"
#include "report/text.h"
#include "text/text.h"

namespace wheelscope {
namespace {

std::string table(const std::vector<ChosenPackage>& packages, const Style& style) {
  // What was asked for, what was looked into, and what is open; the others are many.
  auto is_shown = [](const ChosenPackage& one) {
    return one.asked || one.verdict.fits != Fits::works;
  };
  std::size_t name_width = 0, version_width = 0, others = 0, by_bytes = 0;
  for (const auto& one : packages) {
    if (!is_shown(one)) {
      ++others;
      by_bytes += one.by_bytes;
      continue;
    }
    name_width = std::max(name_width, one.name.size());
    version_width = std::max(version_width, one.version.size());
  }
  std::string text;
  for (const auto& one : packages) {
    if (!is_shown(one)) continue;
    const auto word = padded(name_of(one.verdict.fits), 8);
    std::vector<std::string> words;
    if (one.verdict.reason) words.push_back(reason_text(one.verdict.reason));
    words.emplace_back(one.by_bytes ? "by its bytes" : "by its metadata");
    if (!one.newest.empty()) words.push_back(one.newest + " is the newest");
    text += "  " + padded(printable(one.name), name_width) + "  " +
            padded(printable(one.version), version_width) + "  " +
            (one.verdict.fits == Fits::works ? style.good(word) : style.warn(word)) +
            printable(joined(words, "; ")) + "\n";
  }
  if (others)
    text += "  and " + counted(others, "package") + " that these require, " +
            std::to_string(by_bytes) + " of them looked into\n";
  return text;
}

}  // namespace

std::string clash_text(const ClashLine& line) {
  const auto& because = line.because;
  const auto who = line.who + " " + line.versions;
  const auto reason = because.text.empty() ? reason_text(because.reason) : because.text;
  const auto problem =
      because.text.empty() || !because.reason ? std::string() : ", and " + because.reason.what;
  switch (because.kind) {
    case ClashReason::Kind::asked:
      return "you ask for " + because.text + problem;
    case ClashReason::Kind::required:
      return who + " requires " + because.text + problem;
    case ClashReason::Kind::unavailable:
      return who + ": " + reason;
    case ClashReason::Kind::judged:
      break;
  }
  if (line.other.empty() || line.other_versions.empty())
    return who + (line.other.empty() ? "" : " without " + line.other) + ": " + reason;
  return who + " with " + line.other + " " + line.other_versions + ": " + reason;
}

std::string fit_set_text(const SetAnswer& answer, const Style& style) {
  auto text = style.bold(printable(joined(answer.asked, " "))) + "\n";
  Lines lines(style);
  if (answer.found) {
    text += table(answer.packages, style);
    for (const auto& line : answer.refused) lines.add("not", printable(clash_text(line)));
    for (const auto& line : answer.why) lines.add("why", printable(line));
    if (answer.size) lines.add("read", human_size(answer.read) + " of " + human_size(answer.size));
    lines.add("type", printable(answer.command));
  } else {
    text += "  " + style.bad("no set of versions works here") + "\n";
    for (const auto& line : answer.conflict) lines.add("because", printable(clash_text(line)));
    if (!answer.nearest.empty()) lines.add("nearest", printable(joined(answer.nearest_asked, " ")));
  }
  for (const auto& note : answer.notes) lines.add("note", printable(note));
  return text + lines.text + (answer.nearest.empty() ? "" : table(answer.nearest, style));
}

}  // namespace wheelscope
