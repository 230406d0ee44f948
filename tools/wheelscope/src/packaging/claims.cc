// Reads a wheel's file name, METADATA, WHEEL and variant.json. METADATA and WHEEL have headers as
// in an email (RFC 822; the spec names Python's parser as its reference).
//
//   Key: value            a line that starts with a blank or tab goes on with the value, even if
//    more of the value    there is nothing else on it
//                         an empty line, or one that is no header, ends them
#include "packaging/claims.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "packaging/requirement.h"
#include "packaging/tag.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// True for letters, digits, dots and underscores; a version may have a few more characters.
bool is_plain(std::string_view word, bool version) {
  return !word.empty() && std::ranges::all_of(word, [&](char c) {
    return is_alphanumeric(c) || c == '.' || c == '_' || (version && (c == '+' || c == '!'));
  });
}

// Takes a line with its end, which may be \n, \r\n or \r.
std::string_view take_line(std::string_view& text) {
  auto end = text.find_first_of("\r\n");
  if (end == text.npos)
    end = text.size();
  else
    end += text.substr(end).starts_with("\r\n") ? 2 : 1;
  const auto line = text.substr(0, end);
  text.remove_prefix(end);
  return line;
}

bool is_folded(std::string_view line) {
  return line.starts_with(' ') || line.starts_with('\t');
}

// Returns where the colon of a header is; npos if the line is not a header.
std::size_t colon_of(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ':') return i;
    if (line[i] <= ' ' || line[i] > '~') break;
  }
  return line.npos;
}

// The draft's version, and what resolvers need to know about NVIDIA's provider.
constexpr const char* variant_schema = "https://variants-schema.wheelnext.dev/v0.2.0.json";
constexpr const char* nvidia_provider = "nvidia-variant-provider>=0.0.1,<1.0.0";
constexpr const char* nvidia_plugin = "nvidia_variant_provider.plugin:NvidiaVariantPlugin";
constexpr const char* null_label = "null";  // reserved for the variant without properties

bool has_only(std::string_view text, std::string_view punctuation) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || punctuation.contains(c);
  });
}

// Returns the properties of a variant as `namespace :: feature :: value`; nothing if variantlib
// would reject a part of them.
std::optional<std::vector<std::string>> properties_of(const nlohmann::json& namespaces) {
  if (!namespaces.is_object()) return std::nullopt;
  std::vector<std::string> found;
  for (const auto& [space, features] : namespaces.items()) {
    if (!features.is_object() || !has_only(space, "_")) return std::nullopt;
    for (const auto& [feature, values] : features.items()) {
      if (!values.is_array() || !has_only(feature, "_")) return std::nullopt;
      for (const auto& value : values) {
        if (!value.is_string() || !has_only(value.get<std::string>(), "_.")) return std::nullopt;
        found.push_back(space + " :: " + feature + " :: " + value.get<std::string>());
      }
    }
  }
  return found;
}

}  // namespace

bool is_dist_info(std::string_view member, std::string_view file) {
  const auto slash = member.find('/');
  return slash != member.npos && member.substr(0, slash).ends_with(".dist-info") &&
         member.substr(slash + 1) == file;
}

// A build number starts with a digit and a python tag does not, so six parts are unambiguous: a
// name with a build number, or one with a variant's label.
Result<WheelClaims> parse_wheel_name(std::string_view file_name) {
  constexpr std::string_view suffix = ".whl";
  if (!file_name.ends_with(suffix)) return fail(0, "the name does not end in .whl");
  const auto parts = split(file_name.substr(0, file_name.size() - suffix.size()), '-');
  const bool has_build =
      parts.size() > 5 && !parts[2].empty() && parts[2][0] >= '0' && parts[2][0] <= '9';
  const auto tags = has_build ? 3U : 2U;  // where they start
  if (parts.size() != tags + 3 && parts.size() != tags + 4) {
    return fail(0, "the name has " + std::to_string(parts.size()) +
                       " parts; name-version-python-abi-platform.whl has 5, one more with a build "
                       "number, and one more with a variant's label");
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto words = split(parts[i], i < tags ? '-' : '.');
    for (const auto& word : words) {
      if (!is_plain(word, i == 1))
        return fail(0, "part " + std::to_string(i + 1) +
                           " of the name is empty or has a strange character");
    }
  }
  if (!parse_version(parts[1])) return fail(0, "'" + parts[1] + "' in the name is no version");
  WheelClaims claims{.name = parts[0],
                     .version = parts[1],
                     .build = has_build ? parts[2] : "",
                     .variant = parts.size() == tags + 4 ? parts.back() : ""};
  claims.file_name_tags = expand_tags(parts[tags], parts[tags + 1], parts[tags + 2]);
  if (claims.file_name_tags.empty()) return fail(0, "the name stands for too many tags");
  return claims;
}

void for_each_header(std::string_view text,
                     const std::function<void(std::string_view, std::string_view)>& use) {
  while (!text.empty()) {
    const auto* start = text.data();
    const auto line = take_line(text);
    if (is_folded(line)) continue;  // without a header to continue
    const auto colon = colon_of(line);
    if (colon == line.npos) return;
    while (is_folded(text)) take_line(text);
    const std::string_view whole(start, static_cast<std::size_t>(text.data() - start));
    if (colon > 0) use(line.substr(0, colon), trim(whole.substr(colon + 1)));
  }
}

void parse_wheel_file(std::string_view text, WheelClaims& claims) {
  std::set<std::string> tags;
  for_each_header(text, [&](std::string_view name, std::string_view value) {
    const auto key = lower(name);
    if (key == "generator") claims.generator = value;
    if (key == "root-is-purelib") claims.root_is_purelib = lower(value) == "true";
    constexpr std::size_t most_tags = 10'000;
    if (key == "tag" && tags.size() < most_tags && std::ranges::count(value, '-') == 2) {
      const auto tag = split_tag(value);
      auto expanded = expand_tags(tag.python, tag.abi, tag.platform);
      // Too many to expand: the tag is kept as it is, which will not match the file name.
      constexpr std::size_t most_letters = 100;
      if (expanded.empty()) expanded.emplace_back(value.substr(0, most_letters));
      for (auto& one : expanded) tags.insert(std::move(one));
    }
  });
  claims.wheel_file_tags.assign(tags.begin(), tags.end());
}

void parse_metadata(std::string_view text, WheelClaims& claims) {
  bool says_cuda = false, extends_torch = false;
  std::set<std::string> seen;
  for_each_header(text, [&](std::string_view name, std::string_view value) {
    const auto key = lower(name);
    if (key == "requires-dist") {
      claims.requires_dist.emplace_back(value);
      extends_torch |= canonical_name(parse_requirement(value).name) == "torch";
      return;
    }
    if (key == "classifier") says_cuda |= value.starts_with("Environment :: GPU :: NVIDIA CUDA");
    if (!seen.insert(key).second) return;  // the first of a header that should occur once counts
    if (key == "name") claims.name = value;
    if (key == "version") claims.version = value;
    if (key == "summary") claims.summary = value;
    if (key == "license-expression" || (key == "license" && claims.license.empty()))
      claims.license = trim(value.substr(0, value.find_first_of("\r\n")));  // may be a full text
    if (key == "requires-python") claims.requires_python = value;
  });
  const bool local_cuda = claims.version.find("+cu") != std::string::npos;
  claims.claims_cuda =
      local_cuda || (extends_torch && (says_cuda || claims.name.find("cuda") != std::string::npos));
}

void parse_variant_file(std::string_view text, WheelClaims& claims) {
  claims.has_variant_file = true;
  constexpr std::size_t deepest = 32;
  if (nests_deeper(text, deepest)) return;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("variants") || !json["variants"].is_object() ||
      json["variants"].size() != 1)
    return;
  const auto variant = json["variants"].begin();
  const auto properties = properties_of(variant.value());
  if (!properties || properties->empty() != (variant.key() == null_label)) return;
  claims.variant_file_label = variant.key();
  claims.variant_properties = *properties;
}

bool is_variant_label(std::string_view label) {
  return label != null_label && has_only(label, "._");
}

std::string variant_file_for(const std::string& label, const std::string& capability) {
  auto digits = capability;
  std::erase(digits, '.');
  const nlohmann::ordered_json json{
      {"$schema", variant_schema},
      {"default-priorities", {{"namespace", {"nvidia"}}}},
      {"providers", {{"nvidia", {{"plugin-api", nvidia_plugin}, {"requires", {nvidia_provider}}}}}},
      {"variants", {{label, {{"nvidia", {{"sm_arch", {digits + "_real"}}}}}}}}};
  return json.dump(2) + "\n";
}

}  // namespace wheelscope
