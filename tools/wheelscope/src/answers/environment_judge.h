// Judges the distributions of an environment: their files, and what the loader would say of each
// library.
#pragma once

#include <memory>
#include <set>

#include "answers/environment.h"
#include "facts/machine.h"
#include "loader/disk.h"
#include "machine/imports.h"

namespace wheelscope {

// A process of the environment's Python as the loader sees it: started, and with torch imported if
// wanted.
class PythonProcess {
 public:
  // `torch`: what `import torch` loads is loaded.
  PythonProcess(const MachineFacts& machine, Disk& disk, bool torch);

  // Opens a library as Python opens a module (RTLD_NOW, RTLD_LOCAL), after those in `before`; what
  // an earlier call loaded is gone.
  Opening open(const std::string& path, const std::vector<std::string>& before = {});

  const Loader& loader() const { return loader_; }

 private:
  void import_torch(const MachineFacts& machine);

  Loader loader_;
  std::size_t started_ = 0;  // how many libraries are there from the start
};

// Files of an environment, by which judge_imports() tells whether its broken libraries are needed,
// optional, or decided by Python code.
struct FilesSeen {
  std::vector<std::string> libraries;    // all of the environment's
  std::set<std::string> lost;            // files that Python cannot use, of whatever kind
  std::set<std::string> opened_by_path;  // by Python code, if at all: libraries that do not load
  std::set<std::string> loading_families;
  std::vector<std::pair<Distribution, std::vector<UnmetRequirement>>> unmet;  // where there are any
};

// Completes the verdicts: what each broken library is needed for, and whether an import of each
// distribution loads, also by what it imports from others.
void judge_imports(std::vector<DistributionVerdict>& verdicts, const FilesSeen& seen,
                   Imports& imports, Disk& disk);

// NVIDIA's own libraries choose among kernels that they keep in ways of their own: the targets in
// their fat binaries do not tell which GPUs they serve.
bool chooses_kernels_itself(const Distribution& distribution);

class EnvironmentJudge {
 public:
  EnvironmentJudge(const MachineFacts& machine, Disk& disk, DriverFiles driver);

  std::vector<DistributionVerdict> run();

  std::vector<Search> searches_for(const std::string& name);

 private:
  struct Found {
    Distribution distribution;
    std::vector<std::string> files;  // shared libraries
    std::vector<OddFile> odd;
  };

  SourceTree tree_here();

  // Modules of this Python; and libraries on torch, which torch.ops.load_library opens. torch's own
  // libraries come with its module.
  bool is_opened(const Distribution& distribution, const LibraryFacts& library) const;

  // True for a library that nothing else of the distribution needs: Python code may open it by its
  // path.
  bool may_be_opened(const Distribution& distribution, const LibraryFacts& library,
                     const std::vector<std::string>& files);

  PythonProcess& process_for(const LibraryFacts& library);

  static Search search(const Loader& loader, const std::string& name, const Loaded& by);

  DistributionVerdict judge(const Distribution& distribution, const std::vector<std::string>& files,
                            std::vector<OddFile> odd);

  void lose(const std::string& path, const std::string& kind, Loads loads, const std::string& what,
            DistributionVerdict& verdict);

  // Finds code that is missing or incomplete. Python imports a folder whose __init__.py is missing
  // as one without code.
  void find_lost_files(DistributionVerdict& verdict);

  // A module with the start of an ELF file, or with nothing in it.
  bool is_cut_off(const std::string& path) const;

  // A module for another processor or another Python, of which there is none for this one.
  bool is_for_others(const LibraryFacts& library, const std::vector<std::string>& files,
                     DistributionVerdict& verdict);

  // A library that was built for another NumPy than the one that is installed.
  std::optional<BrokenLibrary> clash_of(const LibraryFacts& library) const;

  // Does the same for a library that a module needs: it imports NumPy's API when the module asks it
  // to.
  std::optional<BrokenLibrary> clash_behind(const std::string& path, const LibraryFacts& library);

  bool has_clashing_library();

  // Packages that are to be imported by another one say so.
  void find_refusal(DistributionVerdict& verdict);

  std::optional<BrokenLibrary> open(const std::string& path, const LibraryFacts& library);

  // Returns what the loader would stop at: libraries first, then versions, then symbols.
  std::optional<Symptom> first_problem(const Loader& loader, const Opening& opening);

  void find_unmet(const Distribution& distribution);

  // Doubts libraries that load on both sides of torch 2.13, and do not say for which they were
  // built.
  void doubt_layout(const WheelClaims& claims, const std::vector<std::string>& files,
                    DistributionVerdict& verdict);

  void find_unserved(const LibraryFacts& library, DistributionVerdict& verdict) const;

  const MachineFacts machine_;  // with all folders that Python looks for modules in
  Disk& disk_;
  ModulesHere modules_;
  Imports imports_;
  bool trusts_driver_;  // to bring its libraries
  std::vector<Found> found_;
  std::map<std::string, std::string> installed_, places_;  // name -> version, library -> path
  std::unique_ptr<PythonProcess> plain_, with_torch_;
  std::set<const LibraryFacts*> bound_;       // every symbol of theirs is found
  std::optional<bool> has_clashing_library_;  // that is no module
  FilesSeen seen_;
};

}  // namespace wheelscope
