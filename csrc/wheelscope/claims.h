// What a wheel says of itself: file name, WHEEL, METADATA and RECORD.
#pragma once

#include "facts.h"

namespace wheelscope {

// name-version(-build)?-python-abi-platform.whl (PEP 427), its compressed tags expanded.
Result<WheelClaims> parse_wheel_name(std::string_view file_name);

// Adds what the dist-info files WHEEL and METADATA say.
void parse_wheel_file(std::string_view text, WheelClaims& claims);
void parse_metadata(std::string_view text, WheelClaims& claims);

// torch from "torch>=2.10; extra == 'x'".
std::string_view requirement_name(std::string_view requirement);

// A line of RECORD: path, sha256=<urlsafe base64 without padding>, size.
struct RecordLine {
  std::string path, hash, size;
};
std::vector<RecordLine> parse_record(std::string_view text);

// A SHA-256 as RECORD spells it.
std::string record_hash(std::span<const std::byte> contents);

// py3-none-manylinux_2_17_x86_64 -> its three parts.
struct Tag {
  std::string python, abi, platform;
};
Tag split_tag(const std::string& tag);

}  // namespace wheelscope
