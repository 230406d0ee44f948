// Turns what readers could not read into findings, each with what to do about it.
#include "findings/findings.h"

#include <algorithm>
#include <tuple>

#include "packaging/tag.h"
#include "text/text.h"

namespace wheelscope {
namespace {

bool is_machine_code(const std::string& id) {
  return id.starts_with("elf-") || id.starts_with("fatbin-") || id.starts_with("archive-");
}

// Returns the remedy for a problem, by the start of its id.
std::string fix_of(const std::string& id) {
  if (id.starts_with("record-"))
    return "build the wheel again, or run `wheel pack`, which writes RECORD anew";
  if (id == "elf-sections")
    return "leave it, or build it again: loaders do not read section headers, so it runs";
  if (is_machine_code(id)) return "rebuild or replace the file; it is damaged";
  if (id == "wheel-name" || id == "dist-info")
    return "rename the wheel to what its builder called it";
  if (id == "limit") return "look at this file with another tool; it is larger inside than outside";
  return "build the wheel again with a standard tool";
}

// True for broken files in test folders: packages that read such files test themselves with them.
bool is_test_data(const Problem& problem) {
  const auto folder = "/" + problem.place;
  return is_machine_code(problem.id) && folder.find("/test") != folder.npos;
}

// A wheel for another system than Linux has no ELF files, so only its own claims can be judged.
void find_foreign_platform(const Item& item, std::vector<Finding>& findings) {
  if (!item.facts.wheel || item.facts.wheel->file_name_tags.empty()) return;
  const auto host = [](const auto& library) { return library.role == Role::host; };
  if (std::ranges::any_of(item.facts.libraries, host)) return;
  for (const auto& text : item.facts.wheel->file_name_tags) {
    if (is_linux_or_any(split_tag(text).platform)) return;
  }
  findings.push_back({.id = "foreign-platform",
                      .level = Finding::Level::note,
                      .what = "the wheel is for " + item.verdicts.platform.tag +
                              "; only Linux' ELF files are judged here",
                      .fix = "judge it with a tool for that system (delocate, delvewheel)"});
}

}  // namespace

Finding finding_of(const Problem& problem) {
  // Limits are this program's: a part that was not read for that reason is not known to be wrong.
  const bool harmless = problem.id == "limit" || problem.id == "elf-sections";
  return {.id = problem.id,
          .level = is_test_data(problem) ? Finding::Level::note
                   : harmless            ? Finding::Level::warning
                                         : Finding::Level::error,
          .place = problem.place,
          .what = problem.what,
          .fix = fix_of(problem.id),
          .offset = problem.offset};
}

Item examine(Facts facts) {
  Item item{.facts = std::move(facts)};
  item.verdicts = judge(item.facts);
  auto& findings = item.findings;
  for (const auto& problem : item.facts.problems.listed) findings.push_back(finding_of(problem));
  for (const auto& [id, count] : item.facts.problems.counts) {
    if (count > ProblemList::most_of_a_kind)
      findings.push_back(
          {.id = id,
           .what = "and " + std::to_string(count - ProblemList::most_of_a_kind) + " more like it",
           .fix = fix_of(id)});
  }
  find_foreign_platform(item, findings);
  std::ranges::stable_sort(findings, {}, [](const Finding& finding) {
    return std::tie(finding.place, finding.id, finding.offset, finding.what);
  });
  return item;
}

}  // namespace wheelscope
