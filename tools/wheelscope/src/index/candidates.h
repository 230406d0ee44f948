// The files that an index has for a requirement, and the page of a project that lists them (PEP 503
// and PEP 691, with 592, 658 and 700).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facts/facts.h"
#include "packaging/requirement.h"
#include "source/bytes.h"
#include "source/http.h"

namespace wheelscope {

// How the address of a file on the disk starts.
inline constexpr std::string_view local_file = "file://";

struct IndexFile {
  std::string name, url;
  std::string sha256;  // empty: not given
  std::optional<std::uint64_t> size = {};
  std::string requires_python;
  bool yanked = false;        // withdrawn: installers take it only if its version is asked for
  bool has_metadata = false;  // the index gives METADATA apart, at the file's address + ".metadata"
};

// What an index is asked for: JSON, or else HTML.
extern const char* const index_page_types;

// `type` is the page's content type, `url` its address. Links that lead nowhere are left out.
Result<std::vector<IndexFile>> parse_index_page(std::string_view text, std::string_view type,
                                                const std::string& url);

struct Candidate {
  IndexFile file;
  WheelClaims claims;  // from its name, and which Pythons the index says it requires
  Version version;
};

struct Candidates {
  std::vector<Candidate> wheels;     // the newest version first
  std::string sdist;                 // the newest file of sources; empty: there is none
  std::uint64_t other_versions = 0;  // wheels that the requirement does not allow
};

// Every file that the indexes have for a project. Fails when none has a file and one could not be
// read; otherwise, what is wrong with one of several becomes notes. `indexes` may have pages of
// links, in the form of links_page().
Result<std::vector<IndexFile>> find_files(Http& http, const std::vector<std::string>& indexes,
                                          const std::string& project,
                                          std::vector<std::string>& notes);

// The file as a wheel of the project. Nothing: it is none, or a variant, which pip does not take.
std::optional<Candidate> wheel_of(const IndexFile& file, const std::string& project);

// name-1.0.tar.gz -> 1.0; nothing: no file of sources.
std::optional<Version> version_of_sdist(const std::string& name);

// Whether an exact version is asked for: then withdrawn files count.
bool names_version(const std::vector<Specifier>& specifiers);
bool names_prerelease(const std::vector<Specifier>& specifiers);

// Pre-releases and withdrawn files count as for pip: where nothing else is allowed, or the version
// is asked for, or with `prereleases`. Fails as find_files() does.
Result<Candidates> find_candidates(Http& http, const std::vector<std::string>& indexes,
                                   const Requirement& requirement, std::vector<std::string>& notes,
                                   bool prereleases = false);

// Asks for the pages that find_candidates() will need, without waiting for them.
void expect_candidates(Http& http, const std::vector<std::string>& indexes,
                       const std::string& project);

}  // namespace wheelscope
