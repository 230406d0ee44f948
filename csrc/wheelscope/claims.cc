// Parses the parts of a wheel that describe it. Specs: PyPA's binary distribution format and core
// metadata.
#include "claims.h"

// OpenSSL's plain hash functions: setting up the providers behind its newer interface takes longer
// than hashing a small wheel.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <memory>

namespace wheelscope {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == text.npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Calls use(key, value) for each header of an email-like file; a blank line ends them.
template <class Use>
void for_each_header(std::string_view text, Use use) {
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (trim(line).empty()) return;
    const auto colon = line.find(':');
    if (colon != line.npos && line.front() != ' ')
      use(line.substr(0, colon), trim(line.substr(colon + 1)));
  }
}

std::vector<std::string> expand(std::string_view pythons, std::string_view abis,
                                std::string_view platforms) {
  std::set<std::string> tags;
  for (const auto& python : split(pythons, '.')) {
    for (const auto& abi : split(abis, '.')) {
      for (const auto& platform : split(platforms, '.'))
        tags.insert(python + "-" + abi + "-" + platform);
    }
  }
  return {tags.begin(), tags.end()};
}

// One field of a CSV line, quoted or not; moves `text` past the field and its separator.
std::string take_field(std::string_view& text) {
  std::string field;
  if (text.starts_with('"')) {
    text.remove_prefix(1);
    while (!text.empty()) {
      const char c = text.front();
      text.remove_prefix(1);
      if (c != '"')
        field += c;
      else if (text.starts_with('"'))
        field += '"', text.remove_prefix(1);
      else
        break;
    }
  }
  const auto end = std::min(text.find(','), text.size());
  field += text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return field;
}

}  // namespace

std::string_view requirement_name(std::string_view requirement) {
  return requirement.substr(0, requirement.find_first_of(" ;<>=!~([@"));
}

Result<WheelClaims> parse_wheel_name(std::string_view file_name) {
  constexpr std::string_view suffix = ".whl";
  if (!file_name.ends_with(suffix))
    return std::unexpected(Error{0, "the name does not end in .whl"});
  const auto parts = split(file_name.substr(0, file_name.size() - suffix.size()), '-');
  if (parts.size() != 5 && parts.size() != 6) {
    return std::unexpected(
        Error{0, "the name has " + std::to_string(parts.size()) +
                     " parts; name-version-python-abi-platform.whl has 5, with a build number 6"});
  }
  WheelClaims claims{
      .name = parts[0], .version = parts[1], .build = parts.size() == 6 ? parts[2] : ""};
  const auto* tags = &parts[parts.size() - 3];
  claims.file_name_tags = expand(tags[0], tags[1], tags[2]);
  return claims;
}

void parse_wheel_file(std::string_view text, WheelClaims& claims) {
  std::set<std::string> tags;
  for_each_header(text, [&](std::string_view key, std::string_view value) {
    if (key == "Generator") claims.generator = value;
    if (key == "Root-Is-Purelib") claims.root_is_purelib = value == "true";
    if (key == "Tag" && std::ranges::count(value, '-') == 2) {
      const auto parts = split(value, '-');
      tags.merge([&] {
        auto all = expand(parts[0], parts[1], parts[2]);
        return std::set<std::string>(all.begin(), all.end());
      }());
    }
  });
  claims.wheel_file_tags.assign(tags.begin(), tags.end());
}

void parse_metadata(std::string_view text, WheelClaims& claims) {
  bool says_cuda = false, extends_torch = false;
  for_each_header(text, [&](std::string_view key, std::string_view value) {
    if (key == "Name") claims.name = value;
    if (key == "Version") claims.version = value;
    if (key == "Summary") claims.summary = value;
    if (key == "License-Expression" || (key == "License" && claims.license.empty()))
      claims.license = value;
    if (key == "Requires-Python") claims.requires_python = value;
    if (key == "Requires-Dist") {
      claims.requires_dist.emplace_back(value);
      extends_torch |= requirement_name(value) == "torch";
    }
    if (key == "Classifier") says_cuda |= value.starts_with("Environment :: GPU :: NVIDIA CUDA");
  });
  const bool local_cuda = claims.version.find("+cu") != std::string::npos;
  claims.claims_cuda =
      local_cuda || (extends_torch && (says_cuda || claims.name.find("cuda") != std::string::npos));
}

std::vector<RecordLine> parse_record(std::string_view text) {
  std::vector<RecordLine> lines;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    auto& record = lines.emplace_back();
    record.path = take_field(line);
    record.hash = take_field(line);
    record.size = take_field(line);
  }
  return lines;
}

std::string record_hash(std::span<const std::byte> contents) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, contents.data(), contents.size());
  SHA256_Final(digest.data(), &context);
  static constexpr char alphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text = "sha256=";
  unsigned bits = 0, buffer = 0;
  for (auto byte : digest) {
    buffer = buffer << 8 | byte;
    for (bits += 8; bits >= 6; bits -= 6) text += alphabet[buffer >> (bits - 6) & 63];
  }
  return text + alphabet[buffer << (6 - bits) & 63];
}

Tag split_tag(const std::string& tag) {
  const auto parts = split(tag, '-');
  return parts.size() == 3 ? Tag{parts[0], parts[1], parts[2]} : Tag{};
}

}  // namespace wheelscope
