// Fuzzes the readers of Python packaging's texts: METADATA, WHEEL, RECORD, requirements, markers,
// versions, specifiers, names and tags. What was understood must survive being written again.
#include "packaging/marker.h"
#include "packaging/metadata.h"
#include "packaging/record.h"
#include "packaging/requirement.h"
#include "packaging/specifier.h"
#include "packaging/tag.h"
#include "packaging/version.h"
#include "packaging/wheel_name.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace wheelscope;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const auto environment = linux_environment("3.13", "x86_64");
  WheelClaims claims;
  parse_metadata(text, claims);
  parse_wheel_file(text, claims);
  (void)parse_record(text);
  const auto requirement = parse_requirement(text);
  (void)holds(requirement.marker, environment);
  (void)holds(text, environment);
  (void)fulfils("2.15.0", text);
  (void)can_fulfil("2.15", text);
  (void)parse_wheel_name(text);
  (void)admits(split_tag(text), PythonBuild("3.14t"));
  (void)promises_more(text, "manylinux_2_28_x86_64");
  if (const auto version = parse_version(text)) {
    const auto again = parse_version(to_string(*version));
    if (!again || *again != *version) __builtin_trap();
  }
  return 0;
}
