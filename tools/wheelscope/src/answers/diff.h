// Lists what changed for users between two wheels.
#pragma once

#include "findings/findings.h"

namespace wheelscope {

struct Change {
  std::string subject;        // tags, size, library torch/lib/x.so ...
  std::string before, after;  // empty: absent
};

// Returns the changes in a fixed order. Both items must have been read with ScanOptions::symbols.
// Each library's changed symbols are named up to `most_names`.
std::vector<Change> diff(const Item& before, const Item& after, std::size_t most_names = 20);

}  // namespace wheelscope
