// This machine with one Python: all that MachineFacts has.
#pragma once

#include "facts/machine.h"
#include "source/bytes.h"

namespace wheelscope {

// `python`: as for find_interpreter. No Python is started.
Result<MachineFacts> read_machine(const std::string& python);

}  // namespace wheelscope
