// Verdicts: what facts mean for those who install a wheel. Each is an enum with its reasons; none
// says whether someone must act on it (see findings/).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "facts/facts.h"
#include "text/text.h"

namespace wheelscope {

struct PlatformVerdict {
  std::string tag;                   // manylinux_2_28_x86_64, linux_x86_64, any
  bool needs_no_libc = false;        // all of its programs are static and run on every Linux
  std::string glibc;                 // the newest version needed: 2.28
  std::vector<std::string> because;  // the versions that rule out an older tag
  std::vector<std::string>
      external_libraries;  // needed, but neither in the wheel nor part of the platform
};

// How modules are bound to Python: not at all, to the limited API of usual builds or of every
// build, or to the versions that they were made for.
enum class PythonAbi { none, abi3, abi3t, version };

struct PythonVerdict {
  PythonAbi abi = PythonAbi::none;
  std::optional<std::string> min;     // the oldest Python
  std::vector<std::string> versions;  // PythonAbi::version: all served ones (3.13, 3.14t)
  std::string newest_symbol;          // abi3: a symbol that needs `min`; empty: none does
  bool needs_slots = false;           // `min` comes from modules that export PyModExport_
  bool by_file_names = false;         // PythonAbi::version: file names tell the Pythons
  std::vector<std::string> because;
};

enum class TorchAbi { none, stable, cxx };

struct TorchVerdict {
  TorchAbi abi = TorchAbi::none;
  std::optional<std::string> min;
  std::vector<std::string> symbols;  // cxx: symbols that bind it; stable: symbols that need `min`
  std::vector<std::string> unknown;  // names like shims' that no known torch has
};

// The NumPy that modules were built for; `both`: their headers find either.
enum class NumpyAbi { none, one, two, both };

struct NumpyVerdict {
  NumpyAbi abi = NumpyAbi::none;
  std::optional<std::string> min;      // the oldest NumPy, if the modules say so
  std::vector<std::string> libraries;  // the modules that decide it
};

enum class Served { no, jit, native };  // from worst to best

// How a library, or a wheel by its weakest library, serves one GPU.
struct GpuVerdict {
  std::string name, capability;
  Served served = Served::no;
  std::string by;       // sm_80, compute_90; empty if not served
  std::string library;  // for a wheel: the library that decides
  std::optional<std::string> min_driver;
  std::uint64_t fatbins = 0, fatbins_unserved = 0;  // of the library: all, and those without code
};

// The device code of one library. The loose cubins, fat binaries and PTX files of a wheel are
// alternatives, and count as one library.
struct LibraryCudaVerdict {
  std::string library;
  std::vector<DeviceTarget> targets;
  std::vector<GpuVerdict> gpus;
};

enum class CudaRuntime { none, linked_statically, dynamic };

struct CudaVerdict {
  CudaRuntime runtime = CudaRuntime::none;
  std::optional<std::string> runtime_version;
  std::vector<std::string> runtime_choices;  // dynamic: versions, any of which is enough
  std::vector<std::string> evidence;
  std::vector<std::string> sass, ptx;  // targets in order
  std::optional<std::string> min_driver;
  std::vector<DeviceTarget> targets;
  std::vector<GpuVerdict> gpus;
  std::vector<LibraryCudaVerdict> libraries;  // libraries with device code
};

struct Verdicts {
  PlatformVerdict platform;
  PythonVerdict python;
  TorchVerdict torch;
  NumpyVerdict numpy;
  CudaVerdict cuda;
};

Verdicts judge(const Facts& facts);

NAMES(PythonAbi, "none", "abi3", "abi3t", "version")
NAMES(TorchAbi, "none", "stable", "cxx")
NAMES(NumpyAbi, "none", "1", "2", "both")
NAMES(Served, "no", "jit", "native")
NAMES(CudaRuntime, "none", "static", "dynamic")

// Judges which platform tag a wheel's libraries justify. `claimed` are the wheel's platform tags:
// they decide which architecture and C library is meant if the wheel has files for several.
PlatformVerdict judge_platform(const std::vector<LibraryFacts>& libraries,
                               const std::vector<std::string>& claimed);

// True if the wheel's platform tag claims an older system than its libraries justify. A tag between
// two of the platform table's policies (manylinux_2_29) is judged by the C library alone.
bool claims_too_much(const std::string& tag, const PlatformVerdict& verdict);

// Returns the glibc of the oldest systems that have a version of a symbol: 2.34 for GLIBCXX_3.4.29.
// Empty if the table does not tell.
std::string glibc_beside(const std::string& version, const std::string& architecture);

// Judges which Pythons a wheel's extension modules load in, by the symbols they need and their file
// names. `wheel` tells the Python of modules that do not name it themselves.
PythonVerdict judge_python(const std::vector<LibraryFacts>& libraries,
                           const std::optional<WheelClaims>& wheel);

// Tells whether modules load in this build of Python (3.13, 3.14t), or why not.
enum class PythonServes { yes, is_older, is_another, not_said };

PythonServes serves_python(const PythonVerdict& verdict, const std::string& python);

// Judges with which torch the libraries run, by the symbols they need.
TorchVerdict judge_torch(const std::vector<LibraryFacts>& libraries);

// Judges with which NumPy a wheel's modules work, by what they look for at run time.
NumpyVerdict judge_numpy(const std::vector<LibraryFacts>& libraries);

// Judges the CUDA side of a wheel: runtime, device code, the GPUs and drivers that it serves.
CudaVerdict judge_cuda(const std::vector<LibraryFacts>& libraries);

// True if device code for `target` (75, 90a, 100f) runs on a GPU of `capability` (7.5).
bool sass_serves(const std::string& target, const std::string& capability);
bool ptx_serves(const std::string& target, const std::string& capability);

// The code that a GPU takes. choose() expects targets in the order of target_before(), and takes
// SASS that runs on the GPU, else PTX that its driver compiles; of several, the nearest. Code for
// the same architecture with and without a suffix is equally near. No targets: nothing serves the
// GPU.
struct Choice {
  Served served = Served::no;
  std::vector<std::string> targets;  // the last is the most specific
};
Choice choose(const std::vector<std::string>& sass, const std::vector<std::string>& ptx,
              const std::string& capability);

// Orders targets: 75, 90, 90a, 100f.
bool target_before(const std::string& a, const std::string& b);

}  // namespace wheelscope
