// The parts of `fit` for sets of packages: what indexes say of them, and what the bytes of their
// wheels show that metadata leaves out.
#pragma once

#include <map>
#include <set>
#include <unordered_map>

#include "answers/fit.h"
#include "commands/remote_wheel.h"
#include "facts/machine.h"
#include "index/candidates.h"
#include "machine/imports.h"
#include "packaging/requirement.h"
#include "resolver/resolver.h"

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
  PackageUniverse(PackageIndex& index, const MachineFacts& machine);

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
  // Returns what an installer takes for it: uvicorn[standard]==0.30, or the file that was asked
  // for.
  std::string to_install(const std::string& project, std::size_t version);
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

  PackageIndex& index_;
  const MachineFacts& machine_;
  bool take_sources_ = true, left_sources_ = false;
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

// Wishes for a set besides the machine.
struct SetWishes {
  std::string cuda;   // the CUDA of torch: 12, 12.8, cpu; empty: any
  bool deep = false;  // read every byte
};

class SetJudge {
 public:
  // The references must outlive it. `is_here`: the machine is this one.
  SetJudge(PackageUniverse& universe, PackageIndex& index, const MachineFacts& machine,
           bool is_here, Lookups lookups, SetWishes wishes)
      : universe_(universe),
        index_(index),
        machine_(machine),
        lookups_(std::move(lookups)),
        wishes_(std::move(wishes)) {
    if (is_here) modules_.emplace(*machine_.python);
  }

  // Reads the wheels of the set that have libraries, in parallel. Each failure rules out all
  // versions of torch or NumPy with which it is the same.
  std::vector<resolver::Clash> check(const resolver::Solution& solution);

  // Sets whether a possible failure counts as one if another torch or NumPy would leave no doubt.
  void avoid_doubts(bool avoid) {
    avoid_doubts_ = avoid;
    had_doubts_ = false;
  }
  bool had_doubts() const { return had_doubts_; }  // whether such doubts counted

  // The verdict on a package of a set, and whether its bytes were read. Missing modules count only
  // for packages that are to be imported (`is_imported`); the others may never be.
  struct Judged {
    FitVerdict verdict;
    bool by_bytes = false;
  };
  Judged judged(const std::string& package, const resolver::Solution& solution, bool is_imported);

  std::uint64_t read() const;  // bytes
  std::uint64_t size() const;  // of the files that were read

 private:
  struct LookedInto {
    Item item;
    WheelFiles files;
    std::shared_ptr<const Remote> remote;
    std::string problem;  // why it could not be read
    // Read at the first question.
    std::shared_ptr<const WheelImports> imports = {};
    std::optional<Refusal> refusal = {};
  };
  using Key = std::pair<std::string, std::size_t>;

  bool is_read(const std::string& package, std::size_t version);
  void look_into(const resolver::Solution& solution);
  LookedInto look_into(const Candidate& wheel, bool numpy);
  const std::optional<WheelFiles>& files_of(const std::string& package, std::size_t version);
  std::optional<const WheelFiles*> find_in(const resolver::Solution& solution,
                                           const std::string& module);
  std::optional<TorchFacts> torch_facts(std::size_t version);
  void judge_torch(std::size_t version, std::vector<resolver::Clash>& clashes);
  FitVerdict judge(const std::string& package, const resolver::Solution& solution);
  Brought brings(const std::string& package, const resolver::Solution& solution,
                 const std::string& library);
  bool may_bring_module(const resolver::Solution& solution, const std::string& module);
  Refusal refusal_of(const WheelFiles& files, const std::string& package,
                     const resolver::Solution& solution);
  std::optional<resolver::Clash> clash_of(const std::string& package,
                                          const resolver::Solution& solution,
                                          const FitVerdict& verdict);

  PackageUniverse& universe_;
  PackageIndex& index_;
  const MachineFacts& machine_;
  Lookups lookups_;
  SetWishes wishes_;
  bool avoid_doubts_ = false, had_doubts_ = false;
  std::map<Key, LookedInto> looked_into_;
  std::map<Key, std::optional<WheelFiles>> files_;
  std::optional<ModulesHere> modules_;  // of this machine, if the question is about it
};

}  // namespace wheelscope
