// Whether a file is a thinning of another one: less device code, and nothing else.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "source/allowance.h"
#include "source/bytes.h"
#include "verdicts/verdicts.h"

namespace wheelscope {

//   missing      it is gone, and was no loose device code
//   added        the original has no such file
//   contents     a file without device code, and not the same
//   host_code    what is loaded apart from fat binaries, or the tables for it
//   device_code  code that the original does not have, or not in this fat binary
enum class ThinDifference { missing, added, contents, host_code, device_code };

struct ByTarget {
  bool operator()(const std::string& a, const std::string& b) const { return target_before(a, b); }
};
using Gpus = std::set<std::string, ByTarget>;

struct ThinCheck {
  std::vector<std::pair<std::string, ThinDifference>> differences;  // file -> what
  Gpus lost;  // GPUs that would no longer get the code that they chose
  Gpus gpus;  // those that still do, of all that were served

  bool holds() const { return differences.empty(); }
};

// Compares one file; adds GPUs to `served` that find code in it, and to `lost` those that would
// choose other code from the second one.
std::optional<ThinDifference> compare_thinned(const std::string& path, Bytes original, Bytes thin,
                                              Gpus& served, Gpus& lost, Allowance& memory);

// The same for a file that was left out.
std::optional<ThinDifference> compare_removed(const std::string& path, Bytes original, Gpus& served,
                                              Gpus& lost, Allowance& memory);

const char* name_of(ThinDifference difference);

}  // namespace wheelscope
