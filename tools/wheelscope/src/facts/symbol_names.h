// Whose a symbol is, as far as its name tells.
#pragma once

#include <string_view>

namespace wheelscope {

// Part of Python's C API.
bool is_python_symbol(std::string_view name);

// A C function of torch's stable ABI.
bool is_torch_shim(std::string_view name);

// Part of torch: a function of its stable ABI, or anything of its C++ ABI.
bool is_torch_symbol(std::string_view name);

}  // namespace wheelscope
