// The sentences of reasons. Nothing reads them but people.
#pragma once

#include "answers/reason.h"

namespace wheelscope {

// Empty for none.
std::string reason_text(const Reason& reason);

// What would have to change for the wheel to serve; the reason itself where no more is known.
std::string change_text(const Reason& reason);

}  // namespace wheelscope
