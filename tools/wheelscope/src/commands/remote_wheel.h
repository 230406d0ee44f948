// Examines a wheel on a web server or on the disk.
#pragma once

#include <string>

#include "answers/wheel_imports.h"
#include "facts/wheel.h"
#include "findings/findings.h"
#include "index/candidates.h"
#include "source/remote.h"

namespace wheelscope {

struct ExaminedWheel {
  Item item;
  WheelFiles files;
  std::shared_ptr<const Remote> remote = {};  // none: it was read by its path
  bool gave_ranges = true;
};

// Reads a wheel on the disk.
Result<ExaminedWheel> read_local_wheel(const std::string& path);

// How much of a wheel is read; by default, what verdicts without device code need.
struct WheelReading {
  bool deep = false;   // the whole wheel
  bool numpy = false;  // find out the NumPy it was built for, even if it requires none
};

// Reads a wheel. `name` is its file name; `metadata` its METADATA, if already known.
Result<ExaminedWheel> read_remote_wheel(Http& http, Cache& cache, const RemoteFile& file,
                                        const std::string& name, std::string metadata,
                                        const WheelReading& reading,
                                        const ClaimsReader& on_claims = {});

// Returns the files of a wheel, whose bytes `keeper` keeps alive. Fails if it is not an archive.
Result<WheelFiles> files_of_wheel(Bytes bytes, std::shared_ptr<const void> keeper);

RemoteFile on_its_server(const IndexFile& file);

// Returns the index's copy of METADATA (PEP 658); empty if there is none and the file has to be
// read.
std::string metadata_of_index(Http& http, Cache& cache, const IndexFile& file);

// Returns that copy, or else METADATA from the file.
Result<std::string> read_metadata(Http& http, Cache& cache, const IndexFile& file);

// Requests what read_metadata() needs first, without waiting for it.
void expect_metadata_of(Http& http, Cache& cache, const IndexFile& file);

}  // namespace wheelscope
