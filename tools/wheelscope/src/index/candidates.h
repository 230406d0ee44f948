// The files that an index has for a requirement, and the page of a project that lists them (PEP 503
// and PEP 691, with 592, 658 and 700).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facts/facts.h"
#include "index/settings.h"
#include "packaging/requirement.h"
#include "source/bytes.h"
#include "source/cache.h"
#include "source/http.h"

namespace wheelscope {

// Where packages are looked for, and the way there.
struct PackageIndex {
  PipSettings from;
  Http http;
  Cache cache;
};

struct IndexFile {
  std::string name, url;  // of a file on the disk: its path behind local_file
  std::string sha256;     // empty: not given
  std::optional<std::uint64_t> size = {};
  std::string requires_python;
  bool yanked = false;        // withdrawn: installers take it only if its version is asked for
  bool has_metadata = false;  // the index serves METADATA at the file's address + ".metadata"
};

// The content types to ask an index for: JSON, or else HTML.
extern const char* const index_page_types;

// Parses a page. `type` is its content type, `url` its address. Skips links that lead nowhere.
Result<std::vector<IndexFile>> parse_index_page(std::string_view text, std::string_view type,
                                                const std::string& url);

struct Candidate {
  IndexFile file;
  WheelClaims claims;  // from its name, with the index's Requires-Python
  Version version;
};

struct Candidates {
  std::vector<Candidate> wheels;     // newest version first
  std::string sdist;                 // newest source file; empty: none
  std::uint64_t other_versions = 0;  // number of wheels that the requirement does not allow
};

// Returns every file of a project that the limits allow. Fails if there is none and an index could
// not be read; otherwise errors of single indexes become notes.
Result<std::vector<IndexFile>> find_files(PackageIndex& index, const std::string& project,
                                          std::vector<std::string>& notes);

// Returns the file as a wheel of the project; nothing if it is not one, or is a variant, which pip
// does not take.
std::optional<Candidate> wheel_of(const IndexFile& file, const std::string& project);

// Returns 1.0 for name-1.0.tar.gz; nothing if the name is not that of a source file.
std::optional<Version> version_of_sdist(const std::string& name);

// True if an exact version is asked for: then withdrawn files count.
bool names_version(const std::vector<Specifier>& specifiers);
bool names_prerelease(const std::vector<Specifier>& specifiers);

// Returns the wheels that fulfil a requirement. Pre-releases and withdrawn files count as for pip:
// if nothing else is allowed, if the version is asked for, or if the settings say so. Fails as
// find_files() does.
Result<Candidates> find_candidates(PackageIndex& index, const Requirement& requirement,
                                   std::vector<std::string>& notes);

// Requests the pages that find_candidates() will need, without waiting for them.
void expect_candidates(PackageIndex& index, const std::string& project);

}  // namespace wheelscope
