// The ops' schemas, the tensors they refuse, and what this build says of itself.
//
// This library never touches the Python C API and calls nothing of torch but its stable C shims, so
// one file serves every Python and every torch from the target version on.
#include <torch/csrc/stable/library.h>

#include "build_info.h"
#include "stable_abi.h"

#if defined(CUDA_EXT_WITH_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace cuda_ext {
namespace {

[[noreturn]] void refuse(const char* op) {
  fail(op,
       ": only dense tensors are supported; convert sparse and MKL-DNN tensors with .to_dense(), "
       "quantized ones "
       "with .dequantize()");
}

NewTensor refuse_my_add(const OwnedHandle&, const OwnedHandle&) {
  refuse("my_add");
}
NewTensor refuse_my_fast_add(const OwnedHandle&, const OwnedHandle&) {
  refuse("my_fast_add");
}
NewTensor refuse_cust_add_int(const OwnedHandle&, int64_t) {
  refuse("cust_add");
}
NewTensor refuse_cust_add_float(const OwnedHandle&, double) {
  refuse("cust_add");
}
NewTensor refuse_cust_add_complex(const OwnedHandle&, double, double) {
  refuse("cust_add");
}

void register_refusals(torch::stable::detail::StableLibrary& m) {
  m.impl("my_add", boxed<&refuse_my_add>);
  m.impl("my_fast_add", boxed<&refuse_my_fast_add>);
  m.impl("cust_add.int", boxed<&refuse_cust_add_int>);
  m.impl("cust_add.float", boxed<&refuse_cust_add_float>);
  m.impl("cust_add.complex", boxed<&refuse_cust_add_complex>);
  m.impl("_my_add", boxed<&refuse_my_add>);
  m.impl("_my_fast_add", boxed<&refuse_my_fast_add>);
  m.impl("_cust_add.int", boxed<&refuse_cust_add_int>);
  m.impl("_cust_add.float", boxed<&refuse_cust_add_float>);
  m.impl("_cust_add.complex", boxed<&refuse_cust_add_complex>);
}

// One line a fact, `name=value`; the Python package reads it.
std::string build_info() {
  constexpr uint64_t target = TORCH_TARGET_VERSION;
  std::string info = "version=" CUDA_EXT_VERSION "\ncompiler=" __VERSION__;
  info +=
      "\nstable_abi=" + std::to_string(target >> 56) + "." + std::to_string(target >> 48 & 0xff);
#if defined(CUDA_EXT_WITH_CUDA)
  info += "\ncuda=" + std::to_string(CUDART_VERSION / 1000) + "." +
          std::to_string(CUDART_VERSION % 1000 / 10);
  info += "\ncuda_compiler=" CUDA_EXT_CUDA_COMPILER "\ntargets=" CUDA_EXT_TARGETS;
#endif
  return info;
}

}  // namespace
}  // namespace cuda_ext

STABLE_TORCH_LIBRARY(cuda_ext_example, m) {
  m.def("my_add(Tensor a, Tensor b) -> Tensor");
  m.def("my_fast_add(Tensor a, Tensor b) -> Tensor");
  // The stable ABI has no Scalar. `int` comes first: a call with an int matches it and keeps all 64
  // bits.
  m.def("cust_add.int(Tensor x, int value) -> Tensor");
  m.def("cust_add.float(Tensor x, float value) -> Tensor");
  m.def("cust_add.complex(Tensor x, float real, float imag) -> Tensor");
  // The kernels alone: what the package's functions call where nothing is being differentiated.
  m.def("_my_add(Tensor a, Tensor b) -> Tensor");
  m.def("_my_fast_add(Tensor a, Tensor b) -> Tensor");
  m.def("_cust_add.int(Tensor x, int value) -> Tensor");
  m.def("_cust_add.float(Tensor x, float value) -> Tensor");
  m.def("_cust_add.complex(Tensor x, float real, float imag) -> Tensor");
  m.def("build_info() -> str");
}

STABLE_TORCH_LIBRARY_IMPL(cuda_ext_example, CompositeExplicitAutograd, m) {
  m.impl("build_info", TORCH_BOX(&cuda_ext::build_info));
}

#define CUDA_EXT_REFUSE(key)                            \
  STABLE_TORCH_LIBRARY_IMPL(cuda_ext_example, key, m) { \
    cuda_ext::register_refusals(m);                     \
  }
CUDA_EXT_REFUSE(SparseCPU)
CUDA_EXT_REFUSE(SparseCUDA)
CUDA_EXT_REFUSE(SparseCsrCPU)
CUDA_EXT_REFUSE(SparseCsrCUDA)
CUDA_EXT_REFUSE(QuantizedCPU)
CUDA_EXT_REFUSE(QuantizedCUDA)
CUDA_EXT_REFUSE(MkldnnCPU)
