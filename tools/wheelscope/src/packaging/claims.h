// Reads what a wheel says of itself, in its file name and in the files of its dist-info folder.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "facts/facts.h"

namespace wheelscope {

// Parses name-version(-build)?-python-abi-platform(-variant)?.whl (PEP 427, and 825 for variants)
// and expands its compressed tags.
Result<WheelClaims> parse_wheel_name(std::string_view file_name);

// True if a member of a wheel is that file of the dist-info folder.
bool is_dist_info(std::string_view member, std::string_view file);

// Calls use(key, value) for each header of METADATA or WHEEL that Python's email parser would find.
// Values are trimmed; a folded value keeps its line ends.
void for_each_header(std::string_view text,
                     const std::function<void(std::string_view key, std::string_view value)>& use);

// Adds what the files say.
void parse_wheel_file(std::string_view text, WheelClaims& claims);
void parse_metadata(std::string_view text, WheelClaims& claims);

// variant.json: the properties of a wheel variant, which say what machines it is for.
//
// Wheel variants are drafts (PEP 817, 825 and 850). This program follows variantlib 0.2.2: a label
// ends the file name, and dist-info has a variant.json whose `variants` maps that label to
// properties by namespace and feature. NVIDIA's provider has the feature `sm_arch`: `90_real` is
// for GPUs of the same major version from 9.0 on, `90_virtual` for any GPU of that major version.
inline constexpr const char* variant_file = "variant.json";

// Adds what the file says.
void parse_variant_file(std::string_view text, WheelClaims& claims);

// True if a label may end the name of a wheel.
bool is_variant_label(std::string_view label);

// Returns the variant.json of a variant with native code for one GPU, of a compute capability such
// as 9.0.
std::string variant_file_for(const std::string& label, const std::string& capability);

}  // namespace wheelscope
