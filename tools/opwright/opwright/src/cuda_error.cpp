// Explains CUDA errors to users: see cuda_error.h.
#include "opwright/cuda_error.h"

#include "build_info.h"

namespace opwright {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string explain_driver() {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  const std::string built = "this library was built with CUDA " + version_text(CUDART_VERSION);
  if (driver == 0)
    return built + " and found no NVIDIA driver (libcuda.so.1); install one to use CUDA tensors";
  return "the NVIDIA driver supports CUDA " + version_text(driver) + " and " + built +
         ", which needs a driver for CUDA " + std::to_string(CUDART_VERSION / 1000) +
         ".0 or newer; update the driver, or install a build made with an older CUDA";
}

std::string explain_target() {
  int device = 0, major = 0, minor = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  return "this library has no code for this GPU, whose compute capability is " +
         std::to_string(major) + "." + std::to_string(minor) + "; it holds code for " +
         OPWRIGHT_TARGETS +
         "; build it from source with TORCH_CUDA_ARCH_LIST=" + std::to_string(major) + "." +
         std::to_string(minor);
}

// Whether a kernel leaves this error behind, after which no call of the process can succeed.
bool is_of_an_earlier_kernel(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string explain(cudaError_t error) {
  std::string text = std::string(cudaGetErrorName(error)) + ": ";
  switch (error) {
    case cudaErrorInsufficientDriver:
      text += explain_driver();
      break;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
      text += explain_target();
      break;
    default:
      text += cudaGetErrorString(error);
      if (is_of_an_earlier_kernel(error)) {
        text +=
            "; a kernel that ran earlier in this process left this error, and CUDA reports it only "
            "now. Run again with CUDA_LAUNCH_BLOCKING=1 to see which one, and restart the process";
      }
  }
  cudaGetLastError();
  return text;
}

}  // namespace opwright
