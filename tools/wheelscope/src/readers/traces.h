// Recognises what a library was built with by the texts that this left in it: a statically linked
// CUDA runtime and its version, and NumPy's C API with the NumPy that its headers were made for.
#pragma once

#include <optional>

#include "readers/elf_file.h"

namespace wheelscope {

struct StaticCudart {
  std::string version;                // 12.9; empty if the evidence does not say
  std::vector<std::string> evidence;  // one sentence each
};

std::optional<StaticCudart> find_static_cudart(const Elf& elf);

struct NumpyApi {
  bool one = false, two = false;  // looks for the API where NumPy 1, or 2, has it
  bool checks_sizes = false;      // Cython: importing it compares the sizes of NumPy's types
  std::string min;                // the oldest NumPy with all functions it may use; empty: unknown
};

// Returns nothing if the library does not import the API through the functions of NumPy's headers.
std::optional<NumpyApi> find_numpy_api(const Elf& elf);

}  // namespace wheelscope
