// A wheel on a web server, examined.
#pragma once

#include <string>

#include "answers/wheel_imports.h"
#include "facts/wheel.h"
#include "findings/findings.h"
#include "index/candidates.h"
#include "source/remote.h"

namespace wheelscope {

struct RemoteWheel {
  Item item;
  WheelFiles files;
  std::shared_ptr<const Remote> remote;
  bool gave_ranges = true;
};

// How much of a wheel is read: what verdicts without device code need.
struct WheelReading {
  bool deep = false;   // all of it
  bool numpy = false;  // which NumPy it is built for, even if it requires none
};

// `name` is its file name, `metadata` its METADATA, if that is known.
Result<RemoteWheel> read_remote_wheel(Http& http, Cache& cache, const RemoteFile& file,
                                      const std::string& name, std::string metadata,
                                      const WheelReading& reading,
                                      const ClaimsReader& on_claims = {});

// The files of a wheel whose bytes somebody keeps. Nothing: it is no archive.
Result<WheelFiles> files_of_wheel(Bytes bytes, std::shared_ptr<const void> keeper);

RemoteFile on_its_server(const IndexFile& file);

// The index's copy of METADATA (PEP 658); empty: there is none, and the file has to be asked.
std::string metadata_of_index(Http& http, Cache& cache, const IndexFile& file);

// That copy, or else METADATA from the file.
Result<std::string> read_metadata(Http& http, Cache& cache, const IndexFile& file);

// Asks for what that needs first, without waiting for it.
void expect_metadata_of(Http& http, Cache& cache, const IndexFile& file);

}  // namespace wheelscope
