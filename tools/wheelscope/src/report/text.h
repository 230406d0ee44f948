// The answers as text for people: aligned, and coloured if the terminal supports it.
#pragma once

#include <string>

#include "answers/cover.h"
#include "answers/diff.h"
#include "answers/environment.h"
#include "answers/explain.h"
#include "answers/fit.h"
#include "answers/link.h"
#include "answers/reason.h"
#include "answers/thin.h"
#include "facts/facts.h"
#include "facts/machine.h"
#include "findings/findings.h"
#include "report/style.h"

namespace wheelscope {

std::string show_text(const Item& item, const Style& style);
std::string sizes_text(const Item& item, const Style& style);  // show --by-size
std::string check_text(const Item& item, const Style& style);
std::string findings_text(const std::vector<Finding>& findings, const Style& style);
std::string cover_text(const std::vector<CellVerdict>& verdicts, const Style& style);
std::string link_text(const LinkReport& report, const Style& style);
std::string diff_text(const std::vector<Change>& changes, const Style& style);
std::string machine_text(const MachineFacts& machine, const Style& style);
std::string explanation_text(const Explanation& explanation, const Style& style);
std::string unmet_text(const UnmetRequirement& unmet);
std::string environment_text(const std::vector<DistributionVerdict>& verdicts, const Style& style);
std::string fit_text(const FitAnswer& answer, const Style& style);
std::string fit_set_text(const SetAnswer& answer, const Style& style);
std::string clash_text(const ClashLine& line);  // one sentence
std::string searches_text(const std::vector<Search>& searches, const Style& style);
std::string symbols_text(const Item& item);
std::string thin_text(const ThinnedWheel& wheel, const Style& style);
std::string thin_packages_text(const std::vector<ThinnedPackage>& packages, const Style& style);
std::string thin_check_text(const ThinCheck& check, const Style& style);
// Returns a row for each plan.
std::string thin_table(const std::string& path, const std::vector<ThinnedWheel>& plans,
                       const Style& style);

// True for a warning or an error, which someone must act on; false for a note.
bool matters(const Finding& finding);

// Returns a sentence for a reason, meant only for people; empty for no reason.
std::string reason_text(const Reason& reason);

// Returns what would have to change for the wheel to serve; the reason itself if no more is known.
std::string change_text(const Reason& reason);

// Escapes texts that could control a terminal: names and values come from untrusted files.
void make_printable(Facts& facts);

// Returns a set of packages as a lock file (PEP 751), which pip and uv install. Fails if a file's
// hash is unknown or the file is not on a web server.
Result<std::string> pylock_text(const SetAnswer& answer, const PythonFacts& python,
                                const std::string& architecture);

}  // namespace wheelscope
