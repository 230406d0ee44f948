// What `wheelscope dump` takes out of a wheel: symbols with their providers, PTX, cubins.
#pragma once

#include <functional>

#include "json_report.h"
#include "wheel.h"

namespace wheelscope {

// name, name@@VERSION (default) or name@VERSION, as nm writes it.
std::string spelled(const SymbolFact& symbol);

Json symbols_json(const Item& item);
std::string symbols_text(const Item& item);

// One piece of device code, decompressed.
struct ExtractedCode {
  std::string file_name;  // pkg/library.so.0001.sm_90a.cubin
  std::string contents;
};

// All PTX or all cubins of a wheel or ELF file; what cannot be decompressed becomes findings. `use`
// gets one at a time.
Result<void> extract_code(const WheelInput& input, bool ptx,
                          const std::function<void(const ExtractedCode&)>& use,
                          std::vector<Finding>& findings);

}  // namespace wheelscope
