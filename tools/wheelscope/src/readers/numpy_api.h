// Recognises a library that uses NumPy's C API, and for which NumPy its headers were made.
#pragma once

#include <optional>

#include "readers/elf_file.h"

namespace wheelscope {

struct NumpyApi {
  bool one = false, two = false;  // it looks for the API where NumPy 1 has it, where NumPy 2 has it
  bool checks_sizes = false;      // Cython: its import compares the sizes of NumPy's types
  std::string min;                // the oldest NumPy with all functions it may use; empty: not said
};

// Nothing: it does not import the API by the functions of NumPy's headers.
std::optional<NumpyApi> find_numpy_api(const Elf& elf);

}  // namespace wheelscope
