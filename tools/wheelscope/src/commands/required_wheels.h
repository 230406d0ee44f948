// Finds the distributions that an installer brings or keeps for a wheel's requirements, and the
// libraries in them.
#pragma once

#include <map>
#include <mutex>

#include "answers/fit.h"
#include "facts/facts.h"
#include "facts/machine.h"
#include "index/candidates.h"
#include "machine/distributions.h"

namespace wheelscope {

// True if all tags say that the wheel runs on any machine: then it has no libraries.
bool is_pure(const WheelClaims& claims);

// Returns the position of the wheel's best tag among the machine's, which an installer ranks by;
// tags.size() if none fits.
std::size_t rank_of(const WheelClaims& claims, const std::vector<std::string>& tags);

// A wheel, and the extras of it that were asked for.
struct WantedWheel {
  const WheelClaims& claims;
  std::vector<std::string> extras = {};
};

class RequiredWheels {
 public:
  // `installed`: installed distributions, which are kept if they fulfil the requirements.
  RequiredWheels(PackageIndex& index, const MachineFacts& machine,
                 const std::vector<Distribution>& installed);

  // Tells whether one of the required distributions, direct or not, has a library of that name.
  Brought bring(const WantedWheel& wheel, const std::string& library);

  // Tells whether one of them has a module; `google.utils` is google/utils.
  Brought bring_module(const WantedWheel& wheel, const std::string& module);

  bool has_here(const std::string& name) const { return installed_.contains(name); }

  // Returns a requirement of the wheel itself that the indexes surely cannot fulfil here; empty if
  // there is none.
  std::string unmet(const WantedWheel& wheel);

  // Returns a requirement that the wheel itself, or the newest version of another required package,
  // does not fulfil; then an installer takes another version of one of the two.
  Reason conflict(const WantedWheel& wheel);

  // Returns a clash between a library of a required wheel and the installed NumPy, if that stays.
  // Wheels that say which NumPy they require are taken at their word.
  Reason numpy_clash(const WantedWheel& wheel);

  // Returns the files of the first one that has a module. Null: none has; nothing: one is unknown.
  std::optional<const WheelFiles*> first_with(const WantedWheel& wheel, const std::string& module);

  // Returns the files of the required wheels that `is_wanted` picks by their file names.
  std::vector<WheelFiles> files_of(const WantedWheel& wheel,
                                   const OtherModules::IsWanted& is_wanted);

  // Returns the NumPy that the wheel will meet; nothing if it is unknown. Two if another required
  // package asks for another one than the wheel itself would take: then installers differ in
  // whether they take that, or another version of the package.
  std::vector<MetNumpy> numpy_met_by(const WantedWheel& wheel);

 private:
  // The distribution that fulfils a requirement: an installed one, or the best file of the index.
  struct Chosen {
    std::string version;
    std::vector<std::string> requires_dist;
    WheelFiles files;
    bool known = false;    // it exists, and could be read
    bool is_none = false;  // the indexes were read and have none
    Reason numpy_clash = {};
  };

  // How much of it is read; wheels for any machine have no libraries.
  enum class Depth { version, requirements, libraries, files, numpy };

  // Visits what is required, directly or not, until `visit` returns true. Returns nothing if it
  // did; else whether all requirements were known.
  using Visit = std::function<bool(const Requirement& requirement, const Chosen& chosen)>;
  std::optional<bool> walk(const WantedWheel& wheel, Depth depth, const Visit& visit);
  Brought bring(const WantedWheel& wheel, Depth depth, const OtherModules::IsWanted& is_it);
  const Chosen& choose(const std::string& name, const std::string& specifiers, Depth depth);
  Chosen look_up(const std::string& name, const std::string& specifiers, Depth depth);
  Reason numpy_clash_of(const Candidate& wheel) const;

  PackageIndex& index_;
  const MachineFacts& machine_;
  MarkerEnvironment environment_;
  std::map<std::string, Distribution> installed_;
  std::map<std::tuple<std::string, std::string, Depth>, Chosen> known_;
};

// Returns the CUDA that a torch brings, from its version (2.15.0+cu130) or its requirements: 13.0;
// empty if none.
std::string cuda_of_torch(const WheelClaims& torch, const MachineFacts& machine);
Result<std::string> cuda_of_torch(PackageIndex& index, Candidate torch,
                                  const MachineFacts& machine);

// Looks up in an index the torch that a wheel asks for and that is not installed here.
class TorchLookup {
 public:
  TorchLookup(PackageIndex& index, const MachineFacts& machine)
      : index_(index), machine_(machine) {}

  // Finds a torch and the CUDA that it brings, which its version may name: 2.15.0+cu130. Several
  // threads may ask; each version is looked up once.
  Result<TorchFacts> find(const std::string& version);

  // Requests what find() will need.
  void expect();

 private:
  Result<TorchFacts> look_up(const std::string& version);

  PackageIndex& index_;
  const MachineFacts& machine_;
  std::once_flag expected_;
  std::mutex mutex_;
  std::map<std::string, Result<TorchFacts>> known_;  // by version
};

}  // namespace wheelscope
