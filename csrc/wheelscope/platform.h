// The platform tag that a wheel's libraries deserve.
#pragma once

#include "facts.h"

namespace wheelscope {

// `architecture` is the one that the wheel claims, or empty: then that of the first library.
PlatformVerdict judge_platform(const std::vector<LibraryFacts>& libraries,
                               const std::string& architecture);

// manylinux_2_28_x86_64 -> x86_64; linux_x86_64 -> x86_64; any -> "".
std::string architecture_of_tag(std::string_view platform_tag);

// Whether tag `a` asks for an older system than tag `b`: manylinux_2_17 than manylinux_2_28, any
// manylinux than linux.
bool promises_more(std::string_view a, std::string_view b);

}  // namespace wheelscope
