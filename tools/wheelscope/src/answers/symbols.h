// The symbols of a file, each with the library that it is expected from.
#pragma once

#include <functional>
#include <string>

#include "findings/findings.h"

namespace wheelscope {

// Every symbol of every library, with the library that an undefined one is expected from (empty: it
// cannot be told).
void for_each_symbol(const Item& item,
                     const std::function<void(const LibraryFacts& library, const SymbolFact& symbol,
                                              const std::string& provider)>& use);

}  // namespace wheelscope
