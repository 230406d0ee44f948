// The platform tag that a wheel's libraries deserve.
#pragma once

#include "verdicts/verdicts.h"

namespace wheelscope {

// `claimed` are the wheel's platform tags: they decide which architecture and C library is meant
// where the wheel has files for several.
PlatformVerdict judge_platform(const std::vector<LibraryFacts>& libraries,
                               const std::vector<std::string>& claimed);

// Whether the wheel's platform tag claims an older system than its libraries deserve. Tags between
// two of the platform table's policies (manylinux_2_29) are judged by the C library alone.
bool claims_too_much(const std::string& tag, const PlatformVerdict& verdict);

// The glibc of the oldest systems that have a version of a symbol: 2.34 for GLIBCXX_3.4.29. Empty:
// the table does not tell.
std::string glibc_beside(const std::string& version, const std::string& architecture);

}  // namespace wheelscope
