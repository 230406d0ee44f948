// Findings for code hosts.
#pragma once

#include <string>
#include <vector>

#include "findings/findings.h"

namespace wheelscope {

// A SARIF 2.1.0 log of one run.
std::string sarif_document(const std::vector<Item>& items);

// A line of GitHub's workflow commands for each finding.
std::string annotations(const std::vector<Item>& items);

}  // namespace wheelscope
