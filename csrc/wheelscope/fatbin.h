// The CUDA fat binary reader: the device code that nvcc and clang put into an ELF file.
#pragma once

#include <string>
#include <vector>

#include "elf.h"

namespace wheelscope {

struct DeviceCode {
  enum class Kind { ptx, sass };
  enum class Compression { none, lz4, zstd };
  Kind kind = Kind::sass;
  Compression compression = Compression::none;
  std::string target;        // 75, 90a, 100f
  bool relocatable = false;  // in __nv_relfatbin: waits for a device link
  std::string name;          // the source that it was compiled from, where recorded
  std::string isa;           // PTX: the version of its language
  std::uint64_t size = 0;    // uncompressed
  Bytes payload;             // as it lies in the file
};

struct Fatbin {
  std::vector<DeviceCode> codes;
  std::vector<Error> problems;
};

// All containers in `section`.
void read_fatbin(Bytes section, bool relocatable, Fatbin& fatbin);

// All device code of an ELF file, from its sections; a file that is a cubin itself counts as one.
Fatbin read_device_code(const Elf& elf, Bytes file);

// PTX text or a cubin.
Result<std::string> decompress(const DeviceCode& code);

const char* name_of(DeviceCode::Kind kind);
const char* name_of(DeviceCode::Compression compression);

}  // namespace wheelscope
