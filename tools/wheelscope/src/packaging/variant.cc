// Reads and writes variant.json.
#include "packaging/claims.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "text/text.h"

namespace wheelscope {
namespace {

// The draft's version, and what its resolvers need to know of NVIDIA's provider.
constexpr const char* variant_schema = "https://variants-schema.wheelnext.dev/v0.2.0.json";
constexpr const char* nvidia_provider = "nvidia-variant-provider>=0.0.1,<1.0.0";
constexpr const char* nvidia_plugin = "nvidia_variant_provider.plugin:NvidiaVariantPlugin";
constexpr const char* null_label = "null";  // of the variant without properties, and of no other

bool nests_too_deeply(std::string_view text) {
  constexpr std::size_t deepest = 32;
  std::size_t depth = 0;
  for (const char c : text) {
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && depth > 0) --depth;
    if (depth > deepest) return true;
  }
  return false;
}

bool has_only(std::string_view text, std::string_view punctuation) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || punctuation.contains(c);
  });
}

// The properties of a variant, as `namespace :: feature :: value`; nothing if a part of them is not
// what variantlib takes.
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

void parse_variant_file(std::string_view text, WheelClaims& claims) {
  claims.has_variant_file = true;
  if (nests_too_deeply(text)) return;
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
