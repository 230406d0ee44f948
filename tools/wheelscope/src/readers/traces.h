// Recognises what a library was built with by the texts that it left: a CUDA runtime that was
// linked in statically, with its version, and NumPy's C API, with the NumPy that its headers were
// made for.
#pragma once

#include <optional>

#include "readers/elf_file.h"

namespace wheelscope {

struct StaticCudart {
  std::string version;                // 12.9; empty when the evidence does not say
  std::vector<std::string> evidence;  // one sentence each
};

std::optional<StaticCudart> find_static_cudart(const Elf& elf);

struct NumpyApi {
  bool one = false, two = false;  // it looks for the API where NumPy 1 has it, where NumPy 2 has it
  bool checks_sizes = false;      // Cython: its import compares the sizes of NumPy's types
  std::string min;                // the oldest NumPy with all functions it may use; empty: not said
};

// Nothing: it does not import the API by the functions of NumPy's headers.
std::optional<NumpyApi> find_numpy_api(const Elf& elf);

}  // namespace wheelscope
