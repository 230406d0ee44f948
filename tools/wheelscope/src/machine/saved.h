// A machine that `wheelscope machine --json` wrote on another computer.
#pragma once

#include <string_view>

#include "facts/machine.h"
#include "source/bytes.h"

namespace wheelscope {

// The reverse of report/json.h's to_json for machines. An error says which key is wrong.
Result<MachineFacts> parse_machine(std::string_view json);

}  // namespace wheelscope
