// Judges all facts of a file: platform, Python, torch, NumPy, CUDA.
#include "packaging/tag.h"
#include "verdicts/cuda.h"
#include "verdicts/numpy_abi.h"
#include "verdicts/platform.h"
#include "verdicts/python_abi.h"
#include "verdicts/torch_abi.h"
#include "verdicts/verdicts.h"

namespace wheelscope {
namespace {

std::string claimed_architecture(const std::optional<WheelClaims>& wheel) {
  if (!wheel) return {};
  for (const auto& tag : wheel->file_name_tags) {
    if (auto architecture = architecture_of_tag(split_tag(tag).platform); !architecture.empty())
      return architecture;
  }
  return {};
}

// A wheel for another system has no libraries that can be judged here: what it says is all there
// is.
void trust_foreign_tag(const Facts& facts, PlatformVerdict& verdict) {
  if (!facts.wheel || verdict.tag != "any") return;
  for (const auto& text : facts.wheel->file_name_tags) {
    const auto platform = split_tag(text).platform;
    if (!is_linux_or_any(platform)) verdict = {.tag = platform, .because = {"the wheel says so"}};
  }
}

}  // namespace

Verdicts judge(const Facts& facts) {
  Verdicts verdicts{
      .platform = judge_platform(facts.libraries, claimed_architecture(facts.wheel)),
      .python = judge_python(facts.libraries, facts.wheel),
      .torch = judge_torch(facts.libraries),
      .numpy = judge_numpy(facts.libraries),
      .cuda = judge_cuda(facts.libraries),
  };
  trust_foreign_tag(facts, verdicts.platform);
  return verdicts;
}

const char* name_of(PythonAbi abi) {
  switch (abi) {
    case PythonAbi::abi3:
      return "abi3";
    case PythonAbi::abi3t:
      return "abi3t";
    case PythonAbi::version:
      return "version";
    default:
      return "none";
  }
}

const char* name_of(TorchAbi abi) {
  return abi == TorchAbi::stable ? "stable" : abi == TorchAbi::cxx ? "cxx" : "none";
}

const char* name_of(NumpyAbi abi) {
  switch (abi) {
    case NumpyAbi::one:
      return "1";
    case NumpyAbi::two:
      return "2";
    case NumpyAbi::both:
      return "both";
    default:
      return "none";
  }
}

const char* name_of(Served served) {
  return served == Served::native ? "native" : served == Served::jit ? "jit" : "no";
}

const char* name_of(CudaRuntime runtime) {
  switch (runtime) {
    case CudaRuntime::linked_statically:
      return "static";
    case CudaRuntime::dynamic:
      return "dynamic";
    default:
      return "none";
  }
}

}  // namespace wheelscope
