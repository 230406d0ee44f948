// The requirements that a pyproject.toml lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "source/bytes.h"

namespace wheelscope {

// Those of [project].dependencies.
Result<std::vector<std::string>> project_dependencies(std::string_view text);

// Those of a group in [dependency-groups] (PEP 735), with the groups that it includes.
Result<std::vector<std::string>> dependency_group(std::string_view text, const std::string& group);

}  // namespace wheelscope
