// Which package index installers here are told to use.
#pragma once

#include <string>
#include <vector>

#include "source/bytes.h"

namespace wheelscope {

// The addresses of indexes, the main one first: from pip's variables and files, else from uv's,
// else PyPI. `environment` is the folder of a virtual environment, whose pip.conf counts; or empty.
std::vector<std::string> configured_indexes(const std::string& environment);

// The addresses in a pip.conf: index-url, and extra-index-url.
struct PipSettings {
  std::string index;
  std::vector<std::string> extra;
};
PipSettings parse_pip_conf(std::string_view text);

// The addresses in a uv.toml. What cannot be read is an error with its line.
Result<PipSettings> parse_uv_toml(std::string_view text);

}  // namespace wheelscope
