// `wheelscope fit` for several projects: versions of them that work together.
#pragma once

#include "commands/commands.h"
#include "facts/machine.h"

namespace wheelscope {

// Whether the command line asks for a set: for more than one project, or in a way that only sets
// have.
bool asks_for_set(const Options& options);

int fit_set(const Options& options, Streams streams, MachineFacts machine);

}  // namespace wheelscope
