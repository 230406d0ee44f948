// Writes the answer of `fit` as text and as JSON: a table of files, then the one to take; or a set
// of packages, or why there is none. A set can also be a lock file, pylock.toml:
// https://packaging.python.org/en/latest/specifications/pylock-toml/

#include "report/json.h"
#include "report/text.h"
#include "source/http.h"
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

std::string table(const std::vector<ChosenPackage>& packages, const Style& style) {
  // Shows the packages that were asked for and those with doubts; the others are many.
  auto is_shown = [](const ChosenPackage& one) {
    return one.asked || one.judged.fits != Fits::works;
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
    const auto word = padded(name_of(one.judged.fits), 8);
    std::vector<std::string> words;
    if (one.judged.reason) words.push_back(reason_text(one.judged.reason));
    words.emplace_back(one.by_bytes ? "by its bytes" : "by its metadata");
    if (!one.newest.empty()) words.push_back(one.newest + " is the newest");
    text += "  " + padded(printable(one.name), name_width) + "  " +
            padded(printable(one.version), version_width) + "  " +
            (one.judged.fits == Fits::works ? style.good(word) : style.warn(word)) +
            printable(joined(words, "; ")) + "\n";
  }
  if (others)
    text += "  and " + counted(others, "package") + " that these require, " +
            std::to_string(by_bytes) + " of them looked into\n";
  return text;
}

// Returns a basic string of TOML. Names and addresses have no control characters.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

}  // namespace

std::string fit_text(const FitAnswer& answer, const Style& style) {
  auto text = style.bold(printable(answer.asked)) + "\n";
  // Files for other systems and Pythons matter only if there are no others.
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
    if (answer.size)
      lines.add("read", human_size(answer.read) + " of " + human_size(answer.size) + "; " +
                            human_size(answer.received) + " came over the network");
    lines.add("type", printable(answer.command));
  } else {
    text += "  " + style.bad("no set of versions works here") + "\n";
    for (const auto& line : answer.conflict) lines.add("because", printable(clash_text(line)));
    if (!answer.nearest.empty()) lines.add("nearest", printable(joined(answer.nearest_asked, " ")));
  }
  for (const auto& note : answer.notes) lines.add("note", printable(note));
  return text + lines.text + (answer.nearest.empty() ? "" : table(answer.nearest, style));
}

Json to_json(const FitVerdict& verdict) {
  return {{"file", verdict.file},
          {"verdict", name_of(verdict.fits)},
          {"obstacle", name_of(verdict.obstacle)},
          {"reason", or_null(reason_text(verdict.reason))},
          {"change", verdict.reason ? or_null(change_text(verdict.reason)) : Json(nullptr)},
          {"notes", verdict.notes},
          {"in_part", verdict.in_part},
          {"size", verdict.size},
          {"read", verdict.read}};
}

Json to_json(const ClashLine& line) {
  return {{"package", or_null(line.who)},
          {"versions", or_null(line.versions)},
          {"other", or_null(line.other)},
          {"other_versions", or_null(line.other_versions)},
          {"text", clash_text(line)}};
}

FIELDS(ChosenPackage, name, version, asked, file, url, sha256, by_bytes, newest, required_by,
       judged)
FIELDS(SetAnswer, asked, found, packages, command, refused, conflict, nearest_asked, nearest, why,
       notes, size, read, received)

Json to_json(const FitAnswer& answer) {
  return {{"asked", answer.asked},
          {"files", to_json(answer.verdicts)},
          {"not_judged", answer.not_judged},
          {"take", or_null(answer.take)},
          {"command", or_null(answer.command)},
          {"nearest", or_null(answer.nearest)},
          {"change", or_null(change_text(answer.obstacle))},
          {"sdist", or_null(answer.sdist)},
          {"notes", answer.notes}};
}

Result<std::string> pylock_text(const SetAnswer& answer, const PythonFacts& python,
                                const std::string& architecture) {
  std::string text =
      "# " + printable(joined(answer.asked, " ")) + "\nlock-version = \"1.0\"\nenvironments = [" +
      quoted("python_version == '" + python.minor() +
             "' and sys_platform == 'linux' and platform_machine == '" + architecture + "'") +
      "]\ncreated-by = \"wheelscope\"\n";
  for (const auto& one : answer.packages) {
    if (one.sha256.empty())
      return fail(0,
                  "a lock file needs the hash of " + one.file + ", which the index does not give");
    const auto file = "{ name = " + quoted(one.file) + ", url = " + quoted(one.url) +
                      (one.size ? ", size = " + std::to_string(*one.size) : "") +
                      ", hashes = { sha256 = " + quoted(one.sha256) + " } }";
    text += "\n[[packages]]\nname = " + quoted(one.name) + "\nversion = " + quoted(one.version) +
            (one.is_source ? "\nsdist = " + file : "\nwheels = [" + file + "]") + "\n";
  }
  return text;
}

}  // namespace wheelscope
