// Registers an op on every dispatch key that needs it: the only table of keys.
//
// Each op is registered twice: under its own name, and with an underscore before it. An op whose
// name begins with one, such as a backward, is only for other ops and is registered once. The
// public op gets autograd and vmap from the Python package; the private one never does, so that a
// call without differentiation, batching or tracing costs no more than torch's own ops.
#pragma once

#include <torch/csrc/stable/library.h>

#include "build_info.h"
#include "opwright/element.h"
#include "stable_abi.h"

namespace opwright {

using Library = torch::stable::detail::StableLibrary;
using BoxedKernel = void(StableIValue* stack, uint64_t arguments, uint64_t results);

inline std::string full_name(const char* schema) {  // includes the overload's name
  return std::string(schema,
                     std::find(schema, schema + std::char_traits<char>::length(schema), '('));
}

// Says, where the package and its doctor read it, what is wrong with an op: throwing would end the
// process that loads the library.
void complain(OpName op, const std::string& problem);

// Whether this is the first op of that full name; the second is complained of.
bool is_first(const char* schema);

inline void define(Library& library, const char* schema) {
  if (!is_first(schema)) return;
  library.def(schema);
  if (*schema != '_') library.def(("_" + std::string(schema)).c_str());
}

inline void implement(Library& library, const char* schema, BoxedKernel* kernel) {
  const std::string name = full_name(schema);
  library.impl(name.c_str(), kernel);
  if (*schema != '_') library.impl(("_" + name).c_str(), kernel);
}

// Adds an op to the build's description of itself: see library.cpp.
void describe(OpName op, DTypes dtypes);

[[noreturn]] inline void refuse_layout(OpName op) {
  fail(op,
       ": only dense tensors are supported; convert sparse and MKL-DNN tensors with .to_dense(), "
       "quantized ones with .dequantize(), and call the op with the .values() of nested ones");
}

}  // namespace opwright

// Calls each of OPWRIGHT_REGISTER(define_ops, ops_on_cpu, ops_on_cuda, refuse_ops) with a Library.
#define OPWRIGHT_REGISTER(define_them, on_cpu_key, on_cuda_key, refuse_them) \
  STABLE_TORCH_LIBRARY_FRAGMENT(OPWRIGHT_EXTENSION, m) {                     \
    define_them(m);                                                          \
  }                                                                          \
  OPWRIGHT_KEY(CPU, on_cpu_key)                                              \
  OPWRIGHT_KEY(CUDA, on_cuda_key)                                            \
  OPWRIGHT_KEY(SparseCPU, refuse_them)                                       \
  OPWRIGHT_KEY(SparseCUDA, refuse_them)                                      \
  OPWRIGHT_KEY(SparseCsrCPU, refuse_them)                                    \
  OPWRIGHT_KEY(SparseCsrCUDA, refuse_them)                                   \
  OPWRIGHT_KEY(QuantizedCPU, refuse_them)                                    \
  OPWRIGHT_KEY(QuantizedCUDA, refuse_them)                                   \
  OPWRIGHT_KEY(MkldnnCPU, refuse_them)                                       \
  OPWRIGHT_KEY(NestedTensorCPU, refuse_them)                                 \
  OPWRIGHT_KEY(NestedTensorCUDA, refuse_them)
#define OPWRIGHT_KEY(key, implement_them)                 \
  STABLE_TORCH_LIBRARY_IMPL(OPWRIGHT_EXTENSION, key, m) { \
    implement_them(m);                                    \
  }
