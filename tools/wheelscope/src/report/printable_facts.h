// Facts whose every text a terminal may get.
#pragma once

#include "facts/facts.h"

namespace wheelscope {

// Escapes what a file could do to a terminal: names and values come from strangers.
void make_printable(Facts& facts);

}  // namespace wheelscope
