// The tables behind the verdicts: data files in data/, embedded in the program. Each file names its
// source. The large ones are CSV, and their tables are views into the text: for a small wheel,
// parsing them takes most of the time.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wheelscope {

// data/manylinux.csv, `names,kind,arch,policy`: for each kind of system ("manylinux", "musllinux",
// "android") the oldest policy that allows a symbol version, library or symbol.
struct PlatformTable {
  struct Arch {
    std::vector<std::string_view> policies;  // oldest first
    std::map<std::string_view, std::map<std::string_view, std::string_view>>
        symbol_versions;  // GLIBC -> 2.28 -> policy
  };
  std::map<std::string_view, std::string_view> aliases;    // manylinux2014 -> manylinux_2_17
  std::map<std::string_view, std::string_view> libraries;  // libm.so.6 -> policy
  // _tr_init -> the library with the forbidden symbol, and the oldest policy that allows it;
  // "manylinux" alone: no policy does.
  std::multimap<std::string_view, std::pair<std::string_view, std::string_view>> forbidden;
  std::map<std::string_view, Arch> arches;
};
const PlatformTable& platform_table(std::string_view system);

// data/torch_shims.csv, `symbols,first_version,library`: the C functions of torch's stable ABI.
struct TorchShim {
  std::string_view first_version;
  std::string_view library;  // libtorch_cpu.so, libtorch_cuda.so
};
const std::map<std::string_view, TorchShim>& torch_shims();

// data/torch_symbols.csv, `symbols,first_version,last_version`: C++ symbols of torch that some of
// its versions have.
struct TorchSpan {
  std::string_view first, last;  // last is empty if the newest torch has it
};
const std::map<std::string_view, TorchSpan>& torch_symbols();

// data/python_abi3.csv, `symbols,first_version`: the symbols of Python's limited API.
const std::map<std::string_view, std::string_view>& python_abi3();

// data/driver_symbols.csv, `symbols,first_cuda`: the functions of libcuda.so.1, and the CUDA that
// brought each; empty: one before the oldest that is told.
const std::map<std::string_view, std::string_view>& driver_symbols();

// data/platform_symbols.csv, `symbols,library`: what the C library and the compiler's runtime
// export.
const std::map<std::string_view, std::string_view>& platform_symbols();

// data/cuda_libraries.csv, `libraries,cuda,distribution`: what NVIDIA's distributions on PyPI
// bring.
struct CudaLibrary {
  std::string_view cuda, distribution;  // CUDA's major version
};
const std::multimap<std::string_view, CudaLibrary>& cuda_libraries();

// data/providers.csv, `names,kind,of,pip,apt,brew`: what brings modules, headers, libraries,
// programs and functions.
struct Provider {
  std::string_view of, pip, apt, brew;  // an empty one: there is none, or it is not known
};
using ProviderTable = std::map<std::string_view, std::map<std::string_view, Provider>>;
const ProviderTable& providers();  // by kind: "module", "header", ...

// data/attributes.csv, `names,module,distribution,brought,removed`: names in modules that only some
// releases of a distribution have.
struct NameSpan {
  std::string_view distribution;
  std::string_view brought, removed;  // the first release with it, the first without it, or empty
};
using NameSpans = std::map<std::pair<std::string_view, std::string_view>, NameSpan>;
const NameSpans& attributes();  // by module and name

// data/cudart.json: the traces of CUDA runtimes.
struct CudartTable {
  struct Minor {
    std::string version;
    std::vector<std::string> markers;  // texts in runtimes since this version
  };
  struct Code {
    std::string before, after;  // the bytes around the version constant
  };
  std::string present;  // a text in every runtime
  std::vector<Minor> minors;
  std::map<std::string, Code> code;  // by machine
};
const CudartTable& cudart_table();

// data/cuda.toml: drivers and GPUs.
struct CudaTable {
  std::map<std::string, std::string> drivers;  // CUDA major, from 11 on -> oldest Linux driver
  std::map<std::string, std::string> toolkit_drivers;  // CUDA 10.2 -> the driver that came with it
  std::map<std::string, std::string>
      ptx_drivers;  // PTX ISA version -> oldest driver that compiles it
  std::map<std::string, std::pair<std::string, std::string>>
      torch_builds;  // CUDA major -> the first and the last torch built for it; empty: the newest
  struct Gpu {
    std::string name, capability;
    bool tegra = false;
    std::string driver;  // the first that knows the GPU; empty: older than every driver named here
    std::string former_capability;  // its name in an older CUDA; empty: the same
  };
  std::vector<Gpu> gpus;
};
const CudaTable& cuda_table();

}  // namespace wheelscope
