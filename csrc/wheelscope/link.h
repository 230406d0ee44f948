// Resolves the undefined symbols of a wheel's libraries the way the dynamic loader would, from
// files alone.
#pragma once

#include "facts.h"

namespace wheelscope {

struct MissingSymbol {
  std::string library;  // that needs it
  std::string symbol;   // name or name@VERSION
  std::string demangled;
  std::string expected_in;  // the library that should have had it; empty: cannot be told
  std::string why;
};

struct LinkReport {
  std::map<std::string, std::uint64_t> resolved;  // providing library -> symbols
  std::uint64_t platform = 0;  // left to the platform's own libraries (libc, libstdc++ ...)
  std::uint64_t python = 0;    // left to the interpreter
  std::uint64_t weak = 0;      // weak and absent: allowed
  std::vector<MissingSymbol> missing;
  std::map<std::string, std::set<std::string>> missing_libraries;  // NEEDED name -> who needs it
};

// All items must have been read with ScanOptions::symbols.
LinkReport link(const Item& wheel, const std::vector<Item>& providers);

std::string demangle(const std::string& symbol);

}  // namespace wheelscope
