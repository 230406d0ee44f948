// Sets up toml++: errors are exceptions, and a text that is not TOML must not end the program
// through an assertion.
#pragma once

#define TOML_EXCEPTIONS 1
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

#include "source/bytes.h"

namespace wheelscope {

// Parses a text from outside this program.
inline Result<toml::table> parse_toml(std::string_view text) try {
  return toml::parse(text);
} catch (const toml::parse_error& error) {
  const std::uint64_t line = error.source().begin.line;
  return fail(line, "line " + std::to_string(line) + ": " + std::string(error.description()));
}

}  // namespace wheelscope
