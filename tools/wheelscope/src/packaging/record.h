// RECORD: the files of a wheel with their hashes and sizes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "source/bytes.h"

namespace wheelscope {

// A line: path, algorithm=<urlsafe base64 without padding>, size.
struct RecordLine {
  std::string path, hash, size;
};
std::vector<RecordLine> parse_record(std::string_view text);

// sha512 from sha512=AbC...; empty: there is no hash.
std::string algorithm_of(std::string_view hash);

// Whether RECORD may use it: sha256 or better, of what every Python can compute.
bool is_strong(std::string_view algorithm);

// The hash of the contents as RECORD spells it; empty for an algorithm that is not computed here.
std::string record_hash(std::span<const std::byte> contents,
                        const std::string& algorithm = "sha256");

}  // namespace wheelscope
