// A whole wheel, or a lone ELF file, as facts.
#pragma once

#include "facts.h"
#include "zip.h"

namespace wheelscope {

struct WheelInput {
  std::string path;  // as the user gave it
  Bytes bytes;
};

// Reads every member on all cores, checks RECORD, and judges. Fails when the file is no zip archive
// at all.
Result<Item> read_wheel(const WheelInput& input, const ScanOptions& options = {},
                        const ZipLimits& limits = {});

Item read_elf_file(const std::string& path, Bytes bytes, const ScanOptions& options = {});

}  // namespace wheelscope
