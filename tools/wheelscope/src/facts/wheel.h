// A whole wheel, or a lone file with machine code, as facts.
#pragma once

#include "facts/facts.h"
#include "readers/zip.h"

namespace wheelscope {

struct WheelInput {
  std::string path;  // as the user gave it
  Bytes bytes;
};

// Reads every member on all cores and checks RECORD. Fails when the file is no zip archive at all.
Result<Facts> read_wheel(const WheelInput& input, const ScanOptions& options = {},
                         const ZipLimits& limits = {});

// An ELF file, a static library, or loose device code; nothing if it is none of these.
std::optional<Facts> read_lone_file(const std::string& path, Bytes bytes,
                                    const ScanOptions& options = {});

// Where an installer puts a member: x-1.0.data/purelib/a.py becomes a.py.
std::string installed_path(const std::string& member);

}  // namespace wheelscope
