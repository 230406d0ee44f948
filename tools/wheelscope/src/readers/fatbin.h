// The CUDA fat binary reader: the device code that nvcc and clang put into an ELF file, and files
// that hold nothing else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "readers/elf_file.h"
#include "text/text.h"

namespace wheelscope {

// What kind of device code: SASS runs on a GPU; PTX is compiled by the driver, LTO-IR by a linker
// first. `unknown` is what NVIDIA's tools put in since.
enum class CodeKind { sass, ptx, lto_ir, unknown };

struct DeviceCode {
  enum class Compression { none, lz4, zstd };
  CodeKind kind = CodeKind::sass;
  Compression compression = Compression::none;
  std::string target;           // 75, 90a, 100f
  bool relocatable = false;     // in __nv_relfatbin: waits for a device link
  std::string_view name;        // the source that it was compiled from, where recorded
  std::string isa;              // PTX: the version of its language
  std::uint64_t size = 0;       // uncompressed
  std::uint64_t container = 0;  // which fat binary of the file it is in
  unsigned raw_kind = 0;        // of an unknown one
  Bytes payload;                // as it lies in the file
  Bytes entry;                  // the same with its header and padding
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

// All containers in `section`.
void read_fatbin(Bytes section, bool relocatable, Loan& memory, Fatbin& fatbin);

// All device code of an ELF file, from its sections; a file that is a cubin itself counts as one.
Fatbin read_device_code(const Elf& elf, Bytes file, Loan& memory);

// Whether a file is a fat binary with nothing around it.
bool looks_like_fatbin(Bytes file);

// The code of a file that is one, or that is a PTX text by its name and contents. Nothing: it is
// neither.
std::optional<Fatbin> read_loose_code(const std::string& path, Bytes file, Loan& memory);

// Adds the code of another file, such as the next object of a static library.
void append(Fatbin& all, Fatbin&& more);

// PTX text or a cubin.
Result<std::string> decompress(const DeviceCode& code, Loan& memory);

NAMES(CodeKind, "sass", "ptx", "lto-ir", "unknown")
NAMES(DeviceCode::Compression, "none", "lz4", "zstd")

// sm_90a, compute_90, lto_90: how NVIDIA's tools spell a target.
std::string spelled(CodeKind kind, const std::string& target);

}  // namespace wheelscope
