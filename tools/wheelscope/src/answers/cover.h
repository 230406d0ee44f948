// Finds out which of a project's wheels serves which of its users.
//
// The matrix is a TOML file: [arch.NAME] tables name architectures, and each [torch."X.Y"] has
// `pythons` ("3.14t" is free-threaded) and `cuda` (the builds of that torch; "cpu" is one). Every
// combination is a cell. Other keys are ignored.
#pragma once

#include "answers/served.h"

namespace wheelscope {

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
