// Describes this build: the op build_info().
//
// This library never touches the Python C API and calls only torch's stable C shims, so one file
// serves every Python and every torch from the target version on.
#include <torch/csrc/stable/library.h>

#include <map>
#include <set>

#include "build_info.h"
#include "opwright/torch/register.h"

#if defined(OPWRIGHT_WITH_CUDA)
#include <cuda_runtime_api.h>
#endif

#if defined(__clang__)
#define OPWRIGHT_CXX __VERSION__  // includes the compiler's name
#else
#define OPWRIGHT_CXX "g++ " __VERSION__
#endif

namespace opwright {
namespace {

// The dtypes of each op, by the op's name.
std::map<std::string, DTypes>& described_ops() {
  static std::map<std::string, DTypes> ops;
  return ops;
}

std::map<std::string, std::string>& problems() {
  static std::map<std::string, std::string> found;
  return found;
}

// "name:dtype,dtype;name:dtype"
std::string described() {
  std::string text;
  for (const auto& [name, dtypes] : described_ops()) {
    text += (text.empty() ? "" : ";") + name;
    char before = ':';
    for (int i = 0; i < dtype_count; ++i) {
      if (!dtypes.has(static_cast<DType>(i))) continue;
      text += before + std::string(dtype_names[i]);
      before = ',';
    }
  }
  return text;
}

// One line per fact, `name=value`; the Python package reads it.
std::string build_info() {
  constexpr uint64_t target = TORCH_TARGET_VERSION;
  std::string info = "version=" OPWRIGHT_VERSION "\ncompiler=" OPWRIGHT_CXX;
  info +=
      "\nstable_abi=" + std::to_string(target >> 56) + "." + std::to_string(target >> 48 & 0xff);
  info += "\nops=" + described();
  for (const auto& [name, problem] : problems()) info += "\nproblem " + name + "=" + problem;
#if defined(OPWRIGHT_WITH_CUDA)
  info += "\ncuda=" + std::to_string(CUDART_VERSION / 1000) + "." +
          std::to_string(CUDART_VERSION % 1000 / 10);
  info += "\ncuda_compiler=" OPWRIGHT_CUDA_COMPILER "\ntargets=" OPWRIGHT_TARGETS;
#endif
  return info;
}

}  // namespace

void describe(OpName op, DTypes dtypes) {
  if (*op.schema == '_') return;  // not for users
  DTypes& known = described_ops()[std::string() + op];
  known = known | dtypes;
}

void complain(OpName op, const std::string& problem) {
  problems()[std::string() + op] = problem;
}

bool is_first(const char* schema) {
  static std::set<std::string> names;
  const bool is_new = names.insert(full_name(schema)).second;
  if (!is_new) complain({schema}, "two ops in csrc/ have this name; rename one of them");
  return is_new;
}

}  // namespace opwright

#define OPWRIGHT_LIBRARY(name, m) STABLE_TORCH_LIBRARY(name, m)  // expands the name
OPWRIGHT_LIBRARY(OPWRIGHT_EXTENSION, m) {
  m.def("build_info() -> str");
}

STABLE_TORCH_LIBRARY_IMPL(OPWRIGHT_EXTENSION, CompositeExplicitAutograd, m) {
  m.impl("build_info", TORCH_BOX(&opwright::build_info));
}
