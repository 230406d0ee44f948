// Writes what `thin` did, or would do, as text and as JSON. A thinned wheel contains that JSON as a
// statement, too.

#include <algorithm>

#include "report/json.h"
#include "report/text.h"

namespace wheelscope {
namespace {

std::string from_to(std::uint64_t before, std::uint64_t after) {
  return human_size(before) + " -> " + human_size(after);
}

std::string codes(const CodeSums& sums) {
  std::vector<std::string> words;
  for (const auto& [code, sum] : sums) words.push_back(code);
  return words.empty() ? "nothing" : joined(words);
}

std::string sentence_of(StaysWhole why, std::uint64_t count) {
  const auto fatbins = std::to_string(count) + (count == 1 ? " fat binary" : " fat binaries");
  switch (why) {
    case StaysWhole::no_sections:
      return fatbins + " kept whole: the file has no section headers to tell them from other data";
    case StaysWhole::broken:
      return fatbins + " kept whole: damaged, or of a form that is not known here";
    case StaysWhole::shared_bytes:
      return fatbins + " kept whole: they share bytes";
    case StaysWhole::unknown_kind:
      return counted(count, "entry") + " kept: of a kind that is not known here";
    default:
      return fatbins + " with no code for these GPUs, before and after: the smallest entry stays";
  }
}

const char* sentence_of(KeepsZeros why) {
  static constexpr const char* sentences[] = {"no range of them is large enough to cut",
                                              "not a shared library", "an unusual layout"};
  return sentences[static_cast<std::size_t>(why)];
}

std::uint64_t device_bytes(const ThinnedWheel& wheel, bool kept_alone) {
  std::uint64_t bytes = 0;
  for (const auto& file : wheel.files) {
    for (const auto& [code, sum] : file.kept) bytes += sum.bytes;
    for (const auto& [code, sum] : file.cut) bytes += kept_alone ? 0 : sum.bytes;
  }
  return bytes;
}

ModuleCount modules_of(const ThinnedWheel& wheel) {
  ModuleCount all;
  for (const auto& gpu : wheel.wanted.gpus) all += count_modules(wheel.files, gpu);
  return all;
}

const char* sentence_of(ThinDifference difference) {
  static constexpr const char* sentences[] = {
      "is missing", "is not in the original", "has other contents",
      "differs in more than its device code",
      "has device code that the original does not have at that place"};
  return sentences[static_cast<std::size_t>(difference)];
}

}  // namespace

std::string thin_packages_text(const std::vector<ThinnedPackage>& packages, const Style& style) {
  constexpr std::size_t name_width = 32, size_width = 24;
  std::string text;
  std::uint64_t before = 0, after = 0;
  for (const auto& package : packages) {
    before += package.size_before;
    after += package.size;
    text += "  " + padded(printable(package.name + " " + package.version), name_width) +
            padded(from_to(package.size_before, package.size), size_width) +
            counted(package.files.size(), "file") + (package.written ? ", written" : "") + "\n";
    for (const auto& note : package.notes)
      text += "    " + style.warn("note") + " " + printable(note) + "\n";
  }
  if (packages.empty()) return "no package here has device code to cut\n";
  return text + "  " + padded("together", name_width) + from_to(before, after) + "\n";
}

std::string thin_check_text(const ThinCheck& check, const Style& style) {
  Lines lines(style);
  for (const auto& [path, difference] : check.differences)
    lines.add(style.bad("differs"), printable(path) + " " + sentence_of(difference));
  if (check.holds()) {
    lines.add("thinning", style.good("yes: less device code, and nothing else differs"));
    lines.add("same code", check.gpus.empty()
                               ? "for no GPU"
                               : "for " + joined({check.gpus.begin(), check.gpus.end()}));
    if (!check.lost.empty())
      lines.add("other code", "or none, for " + joined({check.lost.begin(), check.lost.end()}));
  }
  return lines.text;
}

std::string thin_text(const ThinnedWheel& wheel, const Style& style) {
  Lines lines(style);
  std::uint64_t removed = 0, removed_bytes = 0;
  for (const auto& file : wheel.files) {
    if (file.removed) {
      ++removed;
      removed_bytes += file.size_before;
      continue;
    }
    const auto path = printable(file.path);
    if (!file.changes() && file.stays.empty()) continue;
    lines.add("library", path + "  " + from_to(file.size_before, file.size));
    lines.add("  kept", codes(file.kept));
    if (file.changes()) lines.add("  cut", codes(file.cut));
    for (const auto& [why, count] : file.stays) lines.add("  note", sentence_of(why, count));
    if (file.keeps_zeros)
      lines.add("  note", human_size(file.zeros) +
                              " of zeros stay in the file: " + sentence_of(*file.keeps_zeros));
  }
  if (removed)
    lines.add("left out", counted(removed, "loose file") + " of device code for other GPUs, " +
                              human_size(removed_bytes));
  for (const auto& note : wheel.notes) lines.add("note", printable(note));
  if (!wheel.written.empty()) lines.add("wheel", from_to(wheel.size_before, wheel.size));
  lines.add("installed", from_to(wheel.installed_before, wheel.installed));
  if (!wheel.written.empty())
    lines.add("written", printable(wheel.written));
  else
    lines.add("written", "nothing: there is no device code to cut");
  return style.bold(printable(base_name(wheel.file))) + "  for " + joined(wheel.wanted.gpus) +
         "\n" + lines.text;
}

std::string thin_table(const std::string& path, const std::vector<ThinnedWheel>& plans,
                       const Style& style) {
  if (plans.empty() || plans.front().files.empty())
    return style.bold(printable(base_name(path))) + "  no device code for any of these GPUs\n";
  const auto& first = plans.front();
  constexpr std::size_t narrow = 8, wide = 24;
  auto text = style.bold(printable(base_name(first.file))) + "  " + human_size(first.size_before) +
              ", " + human_size(first.installed_before) + " installed\n  " +
              style.dim(padded("GPU", narrow) + padded("device code", wide) +
                        padded("installed", wide) + "modules") +
              "\n";
  for (const auto& plan : plans) {
    const auto modules = modules_of(plan);
    text += "  " + padded(joined(plan.wanted.gpus), narrow) +
            padded(from_to(device_bytes(plan, false), device_bytes(plan, true)), wide) +
            padded(from_to(plan.installed_before, plan.installed), wide) +
            std::to_string(modules.native) + " native";
    if (modules.jit)
      text += ", " + style.warn(std::to_string(modules.jit) + " compiled by the driver");
    if (modules.unserved)
      text += ", " + style.bad(std::to_string(modules.unserved) + " with no code for it");
    text += "\n";
  }
  return text;
}

Json to_json(const CodeSums& sums) {
  auto json = Json::array();
  for (const auto& [code, sum] : sums)
    json.push_back({{"code", code}, {"count", sum.count}, {"bytes", sum.bytes}});
  return json;
}

FIELDS(ThinFor, gpus, ptx)
FIELDS(ModuleCount, native, jit, unserved)
FIELDS(ThinnedPackage, name, version, written, size_before, size, files, notes)

Json to_json(const FileThinning& of) {
  Json json;
  ADD_FIELDS(path, removed, size_before, size, zeros, keeps_zeros, kept, cut)
  json["stays"] = json["modules"] = Json::object();
  for (const auto& [why, count] : of.stays) json["stays"][name_of(why)] = count;
  for (const auto& [gpu, count] : of.modules) json["modules"][gpu] = to_json(count);
  return json;
}

Json to_json(const ThinCheck& check) {
  auto differences = Json::array();
  for (const auto& [path, difference] : check.differences)
    differences.push_back({{"path", path}, {"difference", name_of(difference)}});
  return {{"thinning", check.holds()},
          {"differences", differences},
          {"same_for", check.gpus},
          {"other_for", check.lost}};
}

Json to_json(const ThinnedWheel& of) {
  Json json{{"file", of.file}};
  json.update(to_json(of.wanted));
  ADD_FIELDS(written, size_before)
  json["size"] = of.written.empty() ? Json() : Json(of.size);
  ADD_FIELDS(installed_before, installed, files, notes)
  return json;
}

}  // namespace wheelscope
