// The machine that the command line asks about.
#pragma once

#include "commands/commands.h"
#include "facts/machine.h"

namespace wheelscope {

// This one, with the Python of --python, or the one that --machine names.
Result<MachineFacts> asked_machine(const Options& options);

// Whether both were given; says so.
bool asks_two_machines(const Options& options, Streams streams);

}  // namespace wheelscope
