// Verdicts: what follows from facts for those who install a wheel. Each is an enum with its
// reasons; none says whether someone must act on it (see findings/).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "facts/facts.h"
#include "text/text.h"

namespace wheelscope {

struct PlatformVerdict {
  std::string tag;                   // manylinux_2_28_x86_64, linux_x86_64, any
  bool needs_no_libc = false;        // all of its programs are static: they run on every Linux
  std::string glibc;                 // the newest version of it that is needed: 2.28
  std::vector<std::string> because;  // the versions that rule out an older tag
  std::vector<std::string>
      external_libraries;  // needed, neither in the wheel nor part of the platform
};

// How modules are bound to Python: not at all, to the limited API of the usual or of every build,
// or to the versions that they were made for.
enum class PythonAbi { none, abi3, abi3t, version };

struct PythonVerdict {
  PythonAbi abi = PythonAbi::none;
  std::optional<std::string> min;     // the oldest Python
  std::vector<std::string> versions;  // PythonAbi::version: all that are served (3.13, 3.14t)
  std::string newest_symbol;          // abi3: one that needs `min`; empty: none does
  bool needs_slots = false;           // `min` is that of modules which export PyModExport_
  bool by_file_names = false;         // PythonAbi::version: modules are named for their Pythons
  std::vector<std::string> because;
};

enum class TorchAbi { none, stable, cxx };

struct TorchVerdict {
  TorchAbi abi = TorchAbi::none;
  std::optional<std::string> min;
  std::vector<std::string> symbols;  // cxx: those that bind it; stable: those that need `min`
  std::vector<std::string> unknown;  // shim-like names that no known torch has
};

// Which NumPy the modules were built for; `both`: with headers that find either.
enum class NumpyAbi { none, one, two, both };

struct NumpyVerdict {
  NumpyAbi abi = NumpyAbi::none;
  std::optional<std::string> min;      // the oldest NumPy, where the modules say so
  std::vector<std::string> libraries;  // those that make it so
};

enum class Served { no, jit, native };  // from worst to best

// How one GPU is served by a library, or by a wheel: then by its weakest library.
struct GpuVerdict {
  std::string name, capability;
  Served served = Served::no;
  std::string by;       // sm_80, compute_90; empty if not served
  std::string library;  // of a wheel's verdict: the library that decides it
  std::optional<std::string> min_driver;
  std::uint64_t fatbins = 0, fatbins_unserved = 0;  // of the library: all, and those without code
};

// The device code of one library; loose cubins, fat binaries and PTX files of a wheel are
// alternatives, and count as one.
struct LibraryCudaVerdict {
  std::string library;
  std::vector<DeviceTarget> targets;
  std::vector<GpuVerdict> gpus;
};

enum class CudaRuntime { none, linked_statically, dynamic };

struct CudaVerdict {
  CudaRuntime runtime = CudaRuntime::none;
  std::optional<std::string> runtime_version;
  std::vector<std::string> runtime_choices;  // dynamic: the versions, of which one is enough
  std::vector<std::string> evidence;
  std::vector<std::string> sass, ptx;  // targets in order
  std::optional<std::string> min_driver;
  std::vector<DeviceTarget> targets;
  std::vector<GpuVerdict> gpus;
  std::vector<LibraryCudaVerdict> libraries;  // those with device code
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

// The platform tag that a wheel's libraries deserve. `claimed` are the wheel's platform tags: they
// decide which architecture and C library is meant where the wheel has files for several.
PlatformVerdict judge_platform(const std::vector<LibraryFacts>& libraries,
                               const std::vector<std::string>& claimed);

// Whether the wheel's platform tag claims an older system than its libraries deserve. Tags between
// two of the platform table's policies (manylinux_2_29) are judged by the C library alone.
bool claims_too_much(const std::string& tag, const PlatformVerdict& verdict);

// The glibc of the oldest systems that have a version of a symbol: 2.34 for GLIBCXX_3.4.29. Empty:
// the table does not tell.
std::string glibc_beside(const std::string& version, const std::string& architecture);

// Which Pythons a wheel's extension modules load in, from the symbols they need and their file
// names; `wheel` names the Python of modules that do not name it themselves.
PythonVerdict judge_python(const std::vector<LibraryFacts>& libraries,
                           const std::optional<WheelClaims>& wheel);

// Whether modules load in this build of Python (3.13, 3.14t), or why they do not.
enum class PythonServes { yes, is_older, is_another, not_said };

PythonServes serves_python(const PythonVerdict& verdict, const std::string& python);

// Which torch a library runs on, from the symbols it needs.
TorchVerdict judge_torch(const std::vector<LibraryFacts>& libraries);

// Which NumPy a wheel's modules run beside, from what they look for at run time.
NumpyVerdict judge_numpy(const std::vector<LibraryFacts>& libraries);

// How a library goes with a version of NumPy, by the texts of its headers.
//   old_headers   built for NumPy 1; `import_array()` fails beside NumPy 2
//   old_types     the same of Cython's: the import itself fails, as NumPy's types have shrunk
//   new_headers   built for NumPy 2 alone, beside NumPy 1
//   new_functions it may use functions that this NumPy does not have; `import_array()` refuses
enum class NumpyClash { none, old_headers, old_types, new_headers, new_functions };

NumpyClash clash_with_numpy(const NumpyApi& api, const std::string& version);

// The CUDA side of a wheel: runtime, device code, the GPUs and drivers that it serves.
CudaVerdict judge_cuda(const std::vector<LibraryFacts>& libraries);

// Whether device code for `target` (75, 90a, 100f) runs on a GPU of `capability` (7.5).
bool sass_serves(const std::string& target, const std::string& capability);
bool ptx_serves(const std::string& target, const std::string& capability);

// What a GPU takes of code for these targets, whose order is that of target_before: SASS that runs
// on it, else PTX that its driver compiles; of several the nearest. Code for the same architecture
// with and without a suffix is equally near. Empty targets: nothing serves it.
struct Choice {
  Served served = Served::no;
  std::vector<std::string> targets;  // the last is the most specific
};
Choice choose(const std::vector<std::string>& sass, const std::vector<std::string>& ptx,
              const std::string& capability);

// The order of targets: 75, 90, 90a, 100f.
bool target_before(const std::string& a, const std::string& b);

}  // namespace wheelscope
