// The page of a project on a package index: its files (PEP 503 and PEP 691, with 592, 658 and 700).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "source/bytes.h"

namespace wheelscope {

// How the address of a file on the disk starts.
inline constexpr std::string_view local_file = "file://";

struct IndexFile {
  std::string name, url;
  std::string sha256;  // empty: not given
  std::optional<std::uint64_t> size = {};
  std::string requires_python;
  bool yanked = false;        // withdrawn: installers take it only if its version is asked for
  bool has_metadata = false;  // the index gives METADATA apart, at the file's address + ".metadata"
};

// What an index is asked for: JSON, or else HTML.
extern const char* const index_page_types;

// `type` is the page's content type, `url` its address. Links that lead nowhere are left out.
Result<std::vector<IndexFile>> parse_index_page(std::string_view text, std::string_view type,
                                                const std::string& url);

}  // namespace wheelscope
