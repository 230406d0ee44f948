// What lies around a wheel on this machine: the system's libraries, Python's symbols, torch's.
#pragma once

#include "answers/suppliers.h"
#include "facts/machine.h"
#include "loader/disk.h"

namespace wheelscope {

// What the files of this machine say; read at the first question, by one thread at a time. `torch`:
// the installed one counts.
Surroundings surroundings_of(const MachineFacts& machine, Disk& disk, bool torch);

}  // namespace wheelscope
