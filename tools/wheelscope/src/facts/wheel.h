// Reads a whole wheel, or one file with machine code, into facts.
#pragma once

#include <functional>

#include "facts/facts.h"
#include "readers/zip.h"

namespace wheelscope {

// Reads the file at `path` if its contents are those of a library or device code. What cannot be
// read becomes problems. Everything that is kept is taken from the allowance.
std::optional<LibraryFacts> read_library(const std::string& path, Bytes file,
                                         const ScanOptions& options, Allowance& memory,
                                         ProblemList& problems);

// Does the same with the first bytes of a shared library; returns nothing if it needs more of them.
std::optional<LibraryFacts> read_library_start(const std::string& path, Bytes start,
                                               std::uint64_t size, Allowance& memory);

struct WheelInput {
  std::string path;  // as the user gave it
  Bytes bytes;
};

// Reads every member, on all cores, and checks RECORD. Fails if the file is not a zip archive at
// all.
Result<Facts> read_wheel(const WheelInput& input, const ScanOptions& options = {},
                         const ZipLimits& limits = {});

// Reads an ELF file, a static library, or loose device code; returns nothing if the file is none of
// these.
std::optional<Facts> read_lone_file(const std::string& path, Bytes bytes,
                                    const ScanOptions& options = {});

// Returns what the name of a wheel and its archive say.
Facts facts_of_archive(const WheelInput& input, const ZipArchive& archive);

// Returns where an installer puts a member: a.py for x-1.0.data/purelib/a.py.
std::string installed_path(const std::string& member);

// --- Reading a wheel without fetching every byte: its directory, its metadata, and as much of each
// library as the verdicts on systems, Pythons, torch and the CUDA runtime need.

// True if wheels may need a library of that name from elsewhere. The first bytes of a library do
// not tell which of the names in them are needed libraries; if one of them is unknown, the library
// is read whole.
using KnownLibrary = std::function<bool(const std::string& name)>;

// Called with METADATA's contents before any library is read, so that the caller can use that time.
using ClaimsReader = std::function<void(const WheelClaims& claims)>;

// Reads such a wheel. The facts say nothing about RECORD, and have device code only of libraries
// that had to be read whole. `metadata`: the text of METADATA; read if empty. `numpy`: whether a
// wheel that does not require NumPy may still meet one. Fails in the same cases as read_wheel().
Result<Facts> read_wheel_start(const WheelInput& input, const KnownLibrary& is_known,
                               std::string metadata = {}, bool numpy = false,
                               const ClaimsReader& on_claims = {});

// Returns only the text of METADATA.
Result<std::string> read_wheel_metadata(const WheelInput& input);

}  // namespace wheelscope
