// Which torch a library runs on, from the symbols it needs.
#pragma once

#include <string_view>

#include "verdicts/verdicts.h"

namespace wheelscope {

// Whether an undefined symbol belongs to torch: a C function of its stable ABI, or anything of its
// C++ ABI.
bool is_torch_symbol(std::string_view name);

TorchVerdict judge_torch(const std::vector<LibraryFacts>& libraries);

}  // namespace wheelscope
