// Takes a wheel's file name apart. A build number starts with a digit and a python tag does not, so
// that six parts are either a name with a build number or one with a variant's label.
#include "packaging/wheel_name.h"

#include <algorithm>

#include "packaging/tag.h"
#include "packaging/version.h"
#include "text/text.h"

namespace wheelscope {

namespace {

// Letters, digits, dots and underscores; a version has a few more.
bool is_plain(std::string_view word, bool version) {
  return !word.empty() && std::ranges::all_of(word, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || (version && (c == '+' || c == '!'));
  });
}

}  // namespace

Result<WheelClaims> parse_wheel_name(std::string_view file_name) {
  constexpr std::string_view suffix = ".whl";
  if (!file_name.ends_with(suffix))
    return std::unexpected(Error{0, "the name does not end in .whl"});
  const auto parts = split(file_name.substr(0, file_name.size() - suffix.size()), '-');
  const bool has_build =
      parts.size() > 5 && !parts[2].empty() && parts[2][0] >= '0' && parts[2][0] <= '9';
  const auto tags = has_build ? 3U : 2U;  // where they start
  if (parts.size() != tags + 3 && parts.size() != tags + 4) {
    return std::unexpected(
        Error{0, "the name has " + std::to_string(parts.size()) +
                     " parts; name-version-python-abi-platform.whl has 5, one more with a build "
                     "number, and one more with a variant's label"});
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto words = split(parts[i], i < tags ? '-' : '.');
    for (const auto& word : words) {
      if (!is_plain(word, i == 1))
        return std::unexpected(Error{0, "part " + std::to_string(i + 1) +
                                            " of the name is empty or has a strange character"});
    }
  }
  if (!parse_version(parts[1]))
    return std::unexpected(Error{0, "'" + parts[1] + "' in the name is no version"});
  WheelClaims claims{.name = parts[0],
                     .version = parts[1],
                     .build = has_build ? parts[2] : "",
                     .variant = parts.size() == tags + 4 ? parts.back() : ""};
  claims.file_name_tags = expand_tags(parts[tags], parts[tags + 1], parts[tags + 2]);
  if (claims.file_name_tags.empty())
    return std::unexpected(Error{0, "the name stands for too many tags"});
  return claims;
}

}  // namespace wheelscope
