// What `wheelscope dump` takes out of a wheel: symbols with their providers, PTX, cubins.
#pragma once

#include <functional>

#include "facts/wheel.h"
#include "findings/findings.h"

namespace wheelscope {

// Every symbol of every library, with the library that an undefined one is expected from (empty: it
// cannot be told).
void for_each_symbol(const Item& item,
                     const std::function<void(const LibraryFacts& library, const SymbolFact& symbol,
                                              const std::string& provider)>& use);

// One piece of device code, decompressed.
struct ExtractedCode {
  std::string file_name;  // pkg/library.so.0001.sm_90a.cubin
  std::string contents;
};

// All PTX or all cubins of a wheel or file; what cannot be decompressed becomes problems. `use`
// gets one at a time.
Result<void> extract_code(const WheelInput& input, CodeKind kind,
                          const std::function<void(const ExtractedCode&)>& use,
                          ProblemList& problems);

}  // namespace wheelscope
