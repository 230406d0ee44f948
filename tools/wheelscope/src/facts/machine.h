// A machine: a computer with one Python on it and what that Python's environment brings. Plain data
// that can be saved as JSON and read elsewhere (machine/machine.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace wheelscope {

// In all of these, an empty text means unknown or absent.

struct GpuFacts {
  std::string name;
  std::string capability;  // 9.0
};

struct PythonFacts {
  std::string executable;
  std::string version;              // 3.11.7
  std::string abi;                  // cp311, cp314t
  std::string prefix, base_prefix;  // as in sys: they differ in a virtual environment
  std::string architecture;
  std::vector<std::string> site_packages;  // where distributions are installed, in Python's order
  std::vector<std::string> tags;           // tags of the wheels that an installer takes, best first

  std::string minor() const { return version.substr(0, version.find('.', version.find('.') + 1)); }
  bool free_threaded() const { return abi.ends_with('t'); }
};

struct TorchFacts {
  std::string path;     // the package's folder
  std::string version;  // 2.10.0+cu128
  std::string cuda;     // 12.8; empty: a CPU build
  std::string rocm;
  std::optional<bool> cxx11_abi;
};

// A library that came with one of CUDA's distributions, or with torch.
struct CudaLibraryFacts {
  std::string name;  // libcudart.so.12
  std::string path;
  std::string distribution, version;  // nvidia-cuda-runtime-cu12, 12.8.90
};

struct MachineFacts {
  std::string architecture;        // x86_64
  std::string libc, libc_version;  // glibc 2.36, musl 1.2.5
  std::string driver;              // 580.65.06; empty: none
  std::vector<GpuFacts> gpus;
  std::optional<PythonFacts> python;
  std::optional<TorchFacts> torch;
  std::vector<CudaLibraryFacts> cuda_libraries;
  std::vector<std::string> notes;  // what could not be found out, and why
};

}  // namespace wheelscope
