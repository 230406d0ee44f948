// The answers as text for people: aligned, coloured where the terminal takes it.
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
// A row for each plan.
std::string thin_table(const std::string& path, const std::vector<ThinnedWheel>& plans,
                       const Style& style);

// A note, warning or error: what someone must act on. Notes are not.
bool matters(const Finding& finding);

// The sentence of a reason, which nobody reads but people; empty for none.
std::string reason_text(const Reason& reason);

// What would have to change for the wheel to serve; the reason itself where no more is known.
std::string change_text(const Reason& reason);

// Escapes what a file could do to a terminal: names and values come from strangers.
void make_printable(Facts& facts);

// A set of packages as a lock file (PEP 751), which pip and uv install. An error: a file's hash is
// not known, or it is not on a web server.
Result<std::string> pylock_text(const SetAnswer& answer, const PythonFacts& python,
                                const std::string& architecture);

// Device code as text: what is in a wheel, which GPUs it serves, what makes it big.
void add_targets(const CudaVerdict& cuda, Lines& lines);
void add_gpus(const CudaVerdict& cuda, const Style& style, Lines& lines);

// A row for each library with device code, a column for each GPU; empty where one library or none
// has any.
std::string library_table(const CudaVerdict& cuda, const Style& style);

// sm_80 1.2 MB, compute_90 200 kB
std::string target_sizes(const std::vector<DeviceTarget>& targets);

}  // namespace wheelscope
