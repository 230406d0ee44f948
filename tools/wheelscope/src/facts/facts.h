// Facts: what a file is, as plain data without views into the input and without judgement.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "packaging/tag.h"
#include "readers/elf_file.h"
#include "readers/fatbin.h"
#include "readers/traces.h"
#include "source/bytes.h"
#include "text/text.h"

namespace wheelscope {

// Device code of one kind in one library or wheel.
struct DeviceTarget {
  CodeKind kind = CodeKind::sass;
  std::string target;  // 75, 90a, 100f
  std::string compression;
  bool relocatable = false;
  std::string isa;  // PTX: the newest version of its language
  std::uint64_t count = 0, bytes = 0, uncompressed_bytes = 0;
};

// Fat binaries of one library that hold the same targets. Compilers make one of each source file.
struct FatbinGroup {
  std::set<std::string> sass, ptx;
  std::uint64_t count = 0;
};

struct SymbolFact {
  std::string name, version, library;
  bool defined = false, weak = false, default_version = true;
  bool first_version = false;  // defined in the library's first version, which old programs mean
};

// The processor that a file is for: a computer's, an NVIDIA GPU, or one that we do not judge
// (another vendor's GPU, a DSP).
enum class Role { host, device, foreign };

enum class FileKind { shared, executable, object, archive, cubin, fatbin, ptx, broken };

struct LibraryFacts {
  std::string path;
  std::uint64_t size = 0;
  Role role = Role::host;
  FileKind kind = FileKind::shared;
  std::string machine;
  unsigned bits = 64;
  bool big_endian = false;
  unsigned isa_level = 0;       // x86-64-v3: 3; 0: any
  System system = System::any;  // by the C library it was linked with; any: unknown
  std::string soname, rpath, runpath, interpreter;
  std::vector<std::string> needed;
  std::map<std::string, std::set<std::string>> version_needs;  // library -> versions
  std::set<std::string> version_definitions;
  ElfHardening hardening;
  bool dynamic = false;
  bool cut_off = false;             // bytes are missing that the loader maps
  bool no_default_folders = false;  // DF_1_NODEFLIB
  bool in_part = false;             // only partly read: nothing is known about its device code
  std::vector<std::string> debug_sections;
  bool has_symbol_table = false;
  std::vector<DeviceTarget> device_code;
  std::vector<FatbinGroup> fatbins;
  std::string toolkit;  // the CUDA version that built its device code; empty: not recorded
  std::map<std::string, bool> python_symbols,
      torch_symbols;                          // undefined name -> needed (false: weak)
  std::set<std::string> forbidden_symbols;    // undefined symbols that a platform's policy forbids
  std::set<std::string> python_like_exports;  // defined here with a name like Python's own
  bool python_module = false;  // exports PyInit_<name> or PyModExport_<name>: Python imports it
  bool exports_init = false, exports_slots = false;  // which of the two it exports
  std::optional<std::string> cudart_version;         // of the static runtime inside; "": unknown
  std::vector<std::string> cudart_evidence;
  std::optional<NumpyApi> numpy;
  std::vector<std::string> build_paths;  // only if ScanOptions asks for them
  std::vector<SymbolFact> symbols;       // likewise; undefined ones first, sorted by name

  // True for files that the loader of the host's operating system maps.
  bool loadable() const {
    return role == Role::host && (kind == FileKind::shared || kind == FileKind::executable);
  }
};

// The wheel's claims about itself.
struct WheelClaims {
  std::string name, version, build, variant;
  std::vector<std::string> file_name_tags, wheel_file_tags;  // expanded, sorted
  std::string generator, requires_python, summary, license;
  bool root_is_purelib = false;
  std::vector<std::string> requires_dist;
  bool claims_cuda = false;                     // an extension of torch that claims to run on GPUs
  std::uint64_t record_verified = 0;            // members whose hash and size are right
  bool has_variant_file = false;                // has a variant.json, described below
  std::string variant_file_label;               // empty: none named, or several
  std::vector<std::string> variant_properties;  // nvidia :: sm_arch :: 90_real
};

struct Facts {
  enum class Kind { wheel, elf, device };
  std::string file;
  Kind kind = Kind::wheel;
  std::uint64_t size = 0;
  std::optional<WheelClaims> wheel;
  std::vector<LibraryFacts> libraries;
  std::map<std::string, std::uint64_t>
      size_by_part;  // uncompressed bytes: device code, libraries, Python, data
  ProblemList problems;
};

// Facts that a command can ask for; some cost time and memory.
struct ScanOptions {
  bool symbols = false;                     // every dynamic symbol
  bool device_code = true;                  // with traces of a CUDA runtime; takes the most time
  bool interfaces = true;                   // python_symbols, torch_symbols and the like
  std::vector<std::string> build_prefixes;  // report strings in binaries that start with one
};

NAMES(Role, "host", "device", "foreign")
NAMES(FileKind, "shared", "executable", "object", "archive", "cubin", "fatbin", "ptx", "broken")
NAMES(Facts::Kind, "wheel", "elf", "device")

// These judge a symbol by its name alone. True for symbols of Python's C API.
inline bool is_python_symbol(std::string_view name) {
  return name.starts_with("Py") || name.starts_with("_Py");
}

// True for C functions of torch's stable ABI.
inline bool is_torch_shim(std::string_view name) {
  return name.starts_with("aoti_torch_") || name.starts_with("torch_");
}

// True for functions of torch's stable ABI and for anything of its C++ ABI.
bool is_torch_symbol(std::string_view name);

}  // namespace wheelscope
