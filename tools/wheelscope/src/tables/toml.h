// toml++, set up once: errors are exceptions, and a text that is no TOML must not end the program
// through one of its assertions.
#pragma once

#define TOML_EXCEPTIONS 1
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>
