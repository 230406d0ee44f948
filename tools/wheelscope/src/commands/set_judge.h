// Judges a set of packages by the bytes of their wheels, which show what metadata leaves out.
#pragma once

#include "answers/fit.h"
#include "commands/package_universe.h"
#include "commands/remote_wheel.h"
#include "machine/imports.h"

namespace wheelscope {

// Wishes for a set besides the machine.
struct SetWishes {
  std::string cuda;   // the CUDA of torch: 12, 12.8, cpu; empty: any
  bool deep = false;  // read every byte
};

class SetJudge {
 public:
  // The references must outlive it. `is_here`: the machine is this one.
  SetJudge(PackageUniverse& universe, Http& http, Cache& cache, const MachineFacts& machine,
           bool is_here, Lookups lookups, SetWishes wishes)
      : universe_(universe),
        http_(http),
        cache_(cache),
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
  const std::optional<std::vector<std::string>>& files_of(const std::string& package,
                                                          std::size_t version);
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
  Http& http_;
  Cache& cache_;
  const MachineFacts& machine_;
  Lookups lookups_;
  SetWishes wishes_;
  bool avoid_doubts_ = false, had_doubts_ = false;
  std::map<Key, LookedInto> looked_into_;
  std::map<Key, std::optional<std::vector<std::string>>> names_;  // of files
  std::optional<ModulesHere> modules_;  // of this machine, if the question is about it
};

}  // namespace wheelscope
