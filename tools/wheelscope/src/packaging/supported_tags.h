// The tags that an installer on a CPython of a Linux takes wheels for, the best first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "packaging/tag.h"

namespace wheelscope {

// `minor` is 3.11; `abi` is that of the interpreter: cp311, cp314t, cp37m, cp311d. The order is
// that of packaging 26.3, which pip takes candidates by.
std::vector<std::string> supported_tags(std::string_view minor, const std::string& abi,
                                        const LinuxSystem& system);

}  // namespace wheelscope
