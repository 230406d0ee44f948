// Which torch a library runs on, from the symbols it needs.
#pragma once

#include "verdicts/verdicts.h"

namespace wheelscope {

TorchVerdict judge_torch(const std::vector<LibraryFacts>& libraries);

}  // namespace wheelscope
