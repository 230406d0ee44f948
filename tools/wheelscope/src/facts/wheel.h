// A whole wheel, or one file with machine code, as facts.
#pragma once

#include <functional>

#include "facts/facts.h"
#include "readers/zip.h"

namespace wheelscope {

// Facts of the file at `path`, if it is one of these by its contents; what cannot be read becomes
// problems. All that is kept is taken from the allowance.
std::optional<LibraryFacts> read_library(const std::string& path, Bytes file,
                                         const ScanOptions& options, Allowance& memory,
                                         ProblemList& problems);

// The same of a shared library's first bytes; nothing: more of them are needed.
std::optional<LibraryFacts> read_library_start(const std::string& path, Bytes start,
                                               std::uint64_t size, Allowance& memory);

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

// A wheel of which not every byte is to be fetched: its directory, its metadata, and of each
// library what the verdicts on systems, Pythons, torch and the CUDA runtime need.

// Whether a library may be one that wheels need from elsewhere. The first bytes of a library do not
// tell which of the names in them it needs: one with a name that is nobody's is read whole.
using KnownLibrary = std::function<bool(const std::string& name)>;

// Told what METADATA says before any library is read, for who can make use of that time.
using ClaimsReader = std::function<void(const WheelClaims& claims)>;

// The facts have no word on RECORD, and device code only of libraries that had to be read whole.
// `metadata`: the text of METADATA, if it is known already; an empty one is read. `numpy`: whether
// a wheel that does not require NumPy may meet one. Fails like read_wheel.
Result<Facts> read_wheel_start(const WheelInput& input, const KnownLibrary& is_known,
                               std::string metadata = {}, bool numpy = false,
                               const ClaimsReader& on_claims = {});

// The text of METADATA alone.
Result<std::string> read_wheel_metadata(const WheelInput& input);

}  // namespace wheelscope
