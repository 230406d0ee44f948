// The driver calls that the launch path makes itself.
//
// `kernel<<<...>>>` goes through cudaLaunchKernel, which looks the kernel up on each call. Looking
// its function up once per device and passing that to the driver saves 0.3 us of the 6 us that a
// small add takes (measured on an H200).
#pragma once

#include <cuda_runtime_api.h>

namespace opwright {

// The device of this thread's current context, or -1 if it has none yet.
int current_device();

// The kernel's function on the current device.
cudaError_t kernel_function(const void* kernel, cudaFunction_t& function);

// Launches on `stream` of the current device.
cudaError_t launch_function(cudaFunction_t function, unsigned blocks, unsigned threads,
                            unsigned shared_bytes, cudaStream_t stream, void** args);

}  // namespace opwright
