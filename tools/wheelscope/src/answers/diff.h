// What changed for users between two wheels.
#pragma once

#include "findings/findings.h"

namespace wheelscope {

struct Change {
  std::string subject;        // tags, size, library torch/lib/x.so ...
  std::string before, after;  // empty: was not there, is not there
};

// In a fixed order; both items read with ScanOptions::symbols. Names of symbols are given up to
// `most_names` a library.
std::vector<Change> diff(const Item& before, const Item& after, std::size_t most_names = 20);

}  // namespace wheelscope
