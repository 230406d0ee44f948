// The reader of static libraries (.a): object files in an archive of `ar`.
#pragma once

#include <functional>

#include "source/bytes.h"

namespace wheelscope {

bool looks_like_archive(Bytes file);

// Calls use(contents) for each member except the tables of symbols and names; fails if the archive
// is damaged.
Result<void> for_each_member(Bytes file, const std::function<void(Bytes contents)>& use);

}  // namespace wheelscope
