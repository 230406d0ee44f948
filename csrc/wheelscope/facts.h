// The facts about a wheel or file that everything after the readers works on: plain data, no views
// into the input.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "elf.h"

namespace wheelscope {

// Something that is wrong, where, and what to do about it.
struct Finding {
  enum class Level { note, warning, error };
  std::string id;
  Level level = Level::error;
  std::string place;  // a member, a library, or empty for the whole file
  std::string what;
  std::string fix;
  std::optional<std::uint64_t> offset = {};  // in the file, or in the member named by `place`
  auto operator<=>(const Finding&) const = default;
};

// Device code of one kind in one library or wheel.
struct DeviceTarget {
  std::string kind;  // sass, ptx
  std::string target;
  std::string compression;
  bool relocatable = false;
  std::string isa;  // PTX: the newest version of its language
  std::uint64_t count = 0, bytes = 0, uncompressed_bytes = 0;
};

struct SymbolFact {
  std::string name, version, library;
  bool defined = false, weak = false, default_version = true;
};

struct LibraryFacts {
  std::string path;
  std::uint64_t size = 0;
  std::string machine;
  unsigned bits = 64;
  bool big_endian = false;
  std::string kind;  // shared, executable, object, cubin
  std::string soname, rpath, runpath, interpreter;
  std::vector<std::string> needed;
  std::map<std::string, std::set<std::string>> version_needs;
  std::set<std::string> version_definitions;
  ElfHardening hardening;
  bool dynamic = false;
  std::vector<std::string> debug_sections;
  bool has_symbol_table = false;
  std::vector<DeviceTarget> device_code;
  std::string toolkit;  // the CUDA version that its device code was built by; empty: not recorded
  std::map<std::string, bool> python_symbols,
      torch_symbols;           // undefined name -> needed (false: weak)
  bool python_module = false;  // exports PyInit_<name>: something that Python imports
  std::optional<std::string> cudart_version;  // of a static runtime inside; "" if it cannot be told
  std::vector<std::string> cudart_evidence;
  std::vector<std::string> build_paths;  // only where ScanOptions asks for them
  std::vector<SymbolFact> symbols;       // likewise
};

// What the wheel says of itself.
struct WheelClaims {
  std::string name, version, build;
  std::vector<std::string> file_name_tags, wheel_file_tags;  // expanded, sorted
  std::string generator, requires_python, summary, license;
  bool root_is_purelib = false;
  std::vector<std::string> requires_dist;
  bool claims_cuda = false;           // an extension of torch that says it runs on GPUs
  std::uint64_t record_verified = 0;  // members whose hash and size are right
};

struct PlatformVerdict {
  std::string tag;                   // manylinux_2_28_x86_64, linux_x86_64, any
  std::vector<std::string> because;  // the versions that rule out an older tag
  std::vector<std::string>
      external_libraries;  // needed, neither in the wheel nor part of the platform
};

struct PythonVerdict {
  std::string kind = "none";  // none, abi3, version
  std::optional<std::string> min;
  std::vector<std::string> because;
};

struct TorchVerdict {
  std::string kind = "none";  // none, stable, cxx
  std::optional<std::string> min;
  std::vector<std::string> symbols;  // cxx: those that bind it; stable: those that need `min`
  std::vector<std::string> unknown;  // shim-like names that no known torch has
};

struct GpuVerdict {
  std::string name, capability;
  std::string served;  // native, jit, no
  std::string by;      // sm_80, compute_90; empty if not served
  std::optional<std::string> min_driver;
};

struct CudaVerdict {
  std::string runtime = "none";  // none, static, dynamic
  std::optional<std::string> runtime_version;
  std::vector<std::string> runtime_choices;  // dynamic: the versions, of which one is enough
  std::vector<std::string> evidence;
  std::vector<std::string> sass, ptx;  // targets in order
  std::optional<std::string> min_driver;
  std::vector<DeviceTarget> targets;
  std::vector<GpuVerdict> gpus;
};

struct Item {
  std::string file;
  std::string kind;  // wheel, elf
  std::uint64_t size = 0;
  std::optional<WheelClaims> wheel;
  PlatformVerdict platform;
  PythonVerdict python;
  TorchVerdict torch;
  CudaVerdict cuda;
  std::vector<LibraryFacts> libraries;
  std::map<std::string, std::uint64_t>
      size_by_part;  // uncompressed bytes of device code, libraries, Python, data
  std::vector<Finding> findings;
};

// What a command needs beyond the usual facts; costs time and memory.
struct ScanOptions {
  bool symbols = false;                     // every dynamic symbol
  std::vector<std::string> build_prefixes;  // report strings in binaries that start so
};

const char* name_of(Finding::Level level);

}  // namespace wheelscope
