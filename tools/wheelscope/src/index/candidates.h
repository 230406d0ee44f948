// The files that an index has for a requirement.
#pragma once

#include <string>
#include <vector>

#include "facts/facts.h"
#include "index/page.h"
#include "packaging/requirement.h"
#include "source/http.h"

namespace wheelscope {

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
