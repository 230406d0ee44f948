// Tells from files alone whether a wheel's libraries would load: applies the loader's rules to the
// wheel as it is installed, together with the packages that it builds on.
#pragma once

#include "findings/findings.h"

namespace wheelscope {

struct MissingSymbol {
  std::string library;  // the one that needs it
  std::string symbol;   // name or name@VERSION
  std::string demangled;
  std::string expected_in;  // the library that should have it; empty: unknown
  std::string why;
};

struct LinkReport {
  std::map<std::string, std::uint64_t> resolved;  // providing library -> symbols
  std::uint64_t platform = 0;  // left to the platform's own libraries (libc, libstdc++ ...)
  std::uint64_t driver = 0;    // left to the GPU driver's libraries
  std::uint64_t python = 0;    // left to the interpreter
  std::uint64_t weak = 0;      // weak and absent: allowed
  std::vector<MissingSymbol> missing;
  std::map<std::string, std::set<std::string>> missing_libraries;  // NEEDED name -> who needs it
  std::map<std::string, std::string> missing_reasons;  // NEEDED name -> why it is not found
};

// Links a wheel. All items must have been read with ScanOptions::symbols. Wheels among the
// providers count as imported before, so their libraries are loaded. Other providers, files and
// folders, are found by name like the system's own libraries.
LinkReport link(const Item& wheel, const std::vector<Item>& providers);

}  // namespace wheelscope
