// The CUDA fat binary reader: the device code that nvcc and clang put into an ELF file, and files
// that hold nothing else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "readers/elf_file.h"
#include "text/text.h"

namespace wheelscope {

// The kind of device code: SASS runs on a GPU; PTX is compiled by the driver; LTO-IR is compiled by
// a linker first. `unknown`: kinds that are newer than this program.
enum class CodeKind { sass, ptx, lto_ir, unknown };

struct DeviceCode {
  enum class Compression { none, lz4, zstd };
  CodeKind kind = CodeKind::sass;
  Compression compression = Compression::none;
  std::string target;           // 75, 90a, 100f
  bool relocatable = false;     // in __nv_relfatbin: still to be linked for the device
  std::string isa;              // PTX: the version of its language
  std::uint64_t size = 0;       // uncompressed
  std::uint64_t container = 0;  // number of its fat binary in the file
  Bytes payload;                // as stored in the file
  Bytes entry;                  // with its header and padding
};

struct FatbinContainer {
  Bytes whole;                    // with its header
  std::uint64_t header_size = 0;  // 0: a lone file, without a container around it
  bool sound = false;             // every entry could be read
};

struct Fatbin {
  std::vector<DeviceCode> codes;
  std::vector<FatbinContainer> containers;
  std::vector<Error> problems;
};

// Reads all containers in `section`.
void read_fatbin(Bytes section, bool relocatable, Loan& memory, Fatbin& fatbin);

// Reads all device code of an ELF file, from its sections; a file that is itself a cubin counts as
// one.
Fatbin read_device_code(const Elf& elf, Bytes file, Loan& memory);

// True if a file is a fat binary and nothing else.
bool looks_like_fatbin(Bytes file);

// Reads the code of such a file, or of one that is a PTX text by its name and contents; nothing for
// any other file.
std::optional<Fatbin> read_loose_code(const std::string& path, Bytes file, Loan& memory);

// Adds the code of another file, such as the next object of a static library.
void append(Fatbin& all, Fatbin&& more);

// Returns PTX text or a cubin.
Result<std::string> decompress(const DeviceCode& code, Loan& memory);

NAMES(CodeKind, "sass", "ptx", "lto-ir", "unknown")
NAMES(DeviceCode::Compression, "none", "lz4", "zstd")

// Returns sm_90a, compute_90 or lto_90, as NVIDIA's tools spell a target.
std::string spelled(CodeKind kind, const std::string& target);

}  // namespace wheelscope
