// The platform tag that a wheel's libraries deserve.
#pragma once

#include "verdicts/verdicts.h"

namespace wheelscope {

// `architecture` is the one that the wheel claims, or empty: then that of the first library.
PlatformVerdict judge_platform(const std::vector<LibraryFacts>& libraries,
                               const std::string& architecture);

// Whether the wheel's platform tag claims an older system than its libraries deserve. Tags between
// two of the platform table's policies (manylinux_2_29) are judged by the C library alone.
bool claims_too_much(const std::string& tag, const PlatformVerdict& verdict);

// The glibc of the oldest systems that have a version of a symbol: 2.34 for GLIBCXX_3.4.29. Empty:
// the table does not tell.
std::string glibc_beside(const std::string& version, const std::string& architecture);

}  // namespace wheelscope
