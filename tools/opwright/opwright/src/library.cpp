// What this build says of itself.
//
// This library never touches the Python C API and calls nothing of torch but its stable C shims, so
// one file serves every Python and every torch from the target version on.
#include <torch/csrc/stable/library.h>

#include "../kernels/rms_norm.h"
#include "build_info.h"
#include "elementwise_ops.h"
#include "stable_abi.h"

#if defined(CUDA_EXT_WITH_CUDA)
#include <cuda_runtime_api.h>
#endif

#if defined(__clang__)
#define CUDA_EXT_CXX __VERSION__  // with its name in it
#else
#define CUDA_EXT_CXX "g++ " __VERSION__
#endif

namespace cuda_ext {
namespace {

// "name:dtype,dtype;", for each op once: further overloads take no dtypes that the first does not.
std::string described(OpName op, DTypes dtypes, std::string before) {
  const std::string name = std::string() + op + ":";
  if ((";" + before).find(";" + name) != std::string::npos) return before;
  std::string text = std::move(before) + name;
  for (int i = 0; i < dtype_count; ++i) {
    if (dtypes.has(static_cast<DType>(i))) text += std::string(dtype_names[i]) + ",";
  }
  text.back() = ';';
  return text;
}

template <typename... Op>
std::string described(OpList<Op...>) {
  std::string text;
  ((text = described({Op::schema}, Op::dtypes, text)), ...);
  text = described({"rms_norm"}, rms_norm_dtypes, text);
  text.pop_back();
  return text;
}

// One line a fact, `name=value`; the Python package reads it.
std::string build_info() {
  constexpr uint64_t target = TORCH_TARGET_VERSION;
  std::string info = "version=" CUDA_EXT_VERSION "\ncompiler=" CUDA_EXT_CXX;
  info +=
      "\nstable_abi=" + std::to_string(target >> 56) + "." + std::to_string(target >> 48 & 0xff);
  info += "\nops=" + described(ElementwiseOps{});
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
  m.def("build_info() -> str");
}

STABLE_TORCH_LIBRARY_IMPL(cuda_ext_example, CompositeExplicitAutograd, m) {
  m.impl("build_info", TORCH_BOX(&cuda_ext::build_info));
}
