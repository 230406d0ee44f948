// Tells whether a wheel serves a user, by its tags, its metadata and its verdicts, and which of a
// project's wheels serves which of its users.
//
// The matrix of users is a TOML file: [arch.NAME] tables name architectures, and each [torch."X.Y"]
// has `pythons` ("3.14t" is free-threaded) and `cuda` (the builds of that torch; "cpu" is one).
// Every combination is a cell. Other keys are ignored.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "answers/reason.h"
#include "facts/machine.h"
#include "findings/findings.h"
#include "packaging/requirement.h"

namespace wheelscope {

// A user with Linux and glibc.
struct Cell {
  std::string arch, torch, cuda, python;  // x86_64, 2.15 or 2.15.1, 13.0 or cpu, 3.13 or 3.14t
};

Cell cell_of(const MachineFacts& machine);

// The wheel's requirements of torch. They are parsed once, and evaluated once for each Python and
// machine: a wheel may have very many, or one with a very long marker.
class TorchRequirements {
 public:
  explicit TorchRequirements(const WheelClaims& claims);

  // Ignores requirements for another system, Python or extra.
  Reason why_not(const Cell& cell);

  // Returns the torch that an exact requirement names; empty if there is none.
  std::string exact() const;

  bool empty() const { return all_.empty(); }

 private:
  std::vector<Requirement> all_;
  std::map<std::pair<std::string, std::string>, std::vector<const Requirement*>> holding_;
};

// Returns the first of a wheel's libraries that may have been built for either layout of tensors;
// null if there is none. torch 2.13 took a field out of every tensor
// (c10/core/impl/PyObjectSlot.h). Code built for one layout may load with the other, but then reads
// the other fields at wrong offsets. Needed symbols that came or went with 2.13, or METADATA, tell
// which layout a library was built for.
const LibraryFacts* of_either_layout(const std::vector<const LibraryFacts*>& libraries, Cell cell,
                                     TorchRequirements& requirements);

inline constexpr std::string_view layout_doubt =
    "torch 2.13 moved the fields of tensors, and it does not say whether it was built before or "
    "after";
inline constexpr std::string_view layout_cure =
    "the torch that it was built with; a call tells for sure";

// Returns a library's path without its numbers: equal for the variants of a library for several
// versions, such as torch-2.9/x.so and torch-2.10/x.so.
std::string without_digits(std::string path);

// All of these judge wheels, not lone files.
Reason why_not_arch(const Item& wheel, const Cell& cell);
Reason why_not_python(const Item& wheel, const Cell& cell);
Reason why_not_torch(const Item& wheel, const Cell& cell, TorchRequirements& requirements);
Reason why_not_without_cuda(const Item& wheel);                      // with a CPU build of torch
Why why_not_numpy(const NumpyApi& api, const std::string& version);  // empty version: not installed
Reason why_not_runtime(const Item& wheel,
                       const Cell& cell);  // with the CUDA that torch brings

struct CellVerdict {
  Cell cell;
  std::string wheel;                                    // the first that serves it; empty: none
  std::vector<std::pair<std::string, Reason>> reasons;  // wheel -> why not
};

// Returns the cells in the order arch, torch, cuda (as listed), python (as listed).
Result<std::vector<Cell>> parse_matrix(std::string_view toml);

// Returns why the wheel does not serve the cell; no reason if it does.
Reason why_not(const Item& wheel, const Cell& cell);

std::vector<CellVerdict> cover(const std::vector<Item>& wheels, const std::vector<Cell>& cells);

}  // namespace wheelscope
