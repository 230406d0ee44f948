// Answers the resolver's questions about package indexes, for one machine: the versions of each
// project, and what each version requires by its metadata.
#pragma once

#include <map>
#include <set>
#include <unordered_map>

#include "answers/fit.h"
#include "facts/machine.h"
#include "index/candidates.h"
#include "packaging/requirement.h"
#include "resolver/resolver.h"
#include "source/cache.h"
#include "source/http.h"

namespace wheelscope {

// A version, and the file that an installer takes for it on the machine.
struct Release {
  Version version;
  std::string spelled;
  std::optional<Candidate> wheel;
  std::optional<IndexFile> sdist;
  Reason reason;  // why there is no wheel for the machine
};

struct Project {
  std::vector<Release> releases;  // newest first
  bool from_source = false;       // none of them has a wheel for the machine
  std::string problem;            // why there are no releases
};

class PackageUniverse {
 public:
  // The arguments must outlive it.
  PackageUniverse(Http& http, Cache& cache, const std::vector<std::string>& indexes,
                  const MachineFacts& machine, bool prereleases);

  // Sets what is asked for: requirements, and paths and addresses of wheels. Fails if a text is
  // none of these.
  Result<bool> ask(const std::vector<std::string>& asked);

  // Sets whether projects without any wheel for the machine may be taken as sources.
  void take_sources(bool take) {
    take_sources_ = take;
    left_sources_ = false;
  }
  bool left_sources() const { return left_sources_; }  // whether sources were left out

  // Returns the names of the projects that are asked for, in that order.
  const std::vector<std::string>& names() const { return names_; }

  // A package is a project, or project[extra].
  std::size_t count_versions(const std::string& package) {
    return project(package).releases.size();
  }
  std::vector<resolver::Clash> needs(const std::string& package, std::size_t version);

  const Project& project(const std::string& package);
  const Release& release(const std::string& package, std::size_t version) {
    return project(package).releases[version];
  }
  // Returns what the file name and METADATA say.
  const Result<WheelClaims>& claims(const std::string& package, std::size_t version);

  // Requests the metadata of all these versions without waiting for it.
  void expect_all(const std::string& package, const resolver::VersionSet& versions) {
    expect_metadata(package, versions, versions.versions());
  }

  // Returns the requirements of a release whose markers hold here.
  std::vector<Requirement> requirements(const WheelClaims& claims, const std::string& extra) const;

  resolver::VersionSet allowed(const std::string& package, const std::string& specifiers);
  std::string spelled(const std::string& package, const resolver::VersionSet& versions);

  // Stores the reason for a clash; returns the number that stands for it.
  std::size_t because(ClashReason reason);
  const ClashReason& reason(std::size_t number) const { return reasons_[number]; }

  // Errors of pages and metadata that could not be read.
  const std::vector<Error>& problems() const { return problems_; }

  static std::string project_of(const std::string& package);
  static std::string extra_of(const std::string& package);

 private:
  Project list(const std::string& name);
  void add_file(IndexFile file, const std::string& name, std::map<Version, Release>& found);
  void add_needs(const std::vector<Requirement>& requirements, const std::string& package,
                 const resolver::VersionSet& version, ClashReason::Kind kind,
                 std::vector<resolver::Clash>& clashes);
  std::vector<resolver::Clash> unavailable(const std::string& package, std::size_t version);
  void expect_metadata(const std::string& package, const resolver::VersionSet& versions,
                       std::size_t most = 1);

  Http& http_;
  Cache& cache_;
  const std::vector<std::string>& indexes_;
  const MachineFacts& machine_;
  bool prereleases_, take_sources_ = true, left_sources_ = false;
  MarkerEnvironment environment_;
  std::unordered_map<std::string, std::size_t> ranks_;  // of the machine's tags
  std::vector<Requirement> asked_;
  std::vector<std::string> names_;
  std::map<std::string, IndexFile> given_;  // wheels that were asked for by path or address
  std::set<std::string> may_be_prerelease_, may_be_withdrawn_;
  std::map<std::string, Project> projects_;
  std::map<std::pair<std::string, std::size_t>, Result<WheelClaims>> claims_;
  std::set<std::string> expected_;
  std::vector<ClashReason> reasons_;
  std::vector<Error> problems_;
};

}  // namespace wheelscope
