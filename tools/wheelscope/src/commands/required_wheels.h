// The distributions that an installer brings, or keeps, for what a wheel requires; and the
// libraries in them.
#pragma once

#include <map>
#include <mutex>

#include "answers/fit.h"
#include "facts/facts.h"
#include "facts/machine.h"
#include "index/candidates.h"
#include "machine/distributions.h"
#include "source/cache.h"
#include "source/http.h"

namespace wheelscope {

// Whether its tags say that it runs on any machine: then it has no libraries.
bool is_pure(const WheelClaims& claims);

// The place of the wheel's best tag among the machine's, as an installer ranks it; as many as there
// are: none fits.
std::size_t rank_of(const WheelClaims& claims, const std::vector<std::string>& tags);

class RequiredWheels {
 public:
  // `installed`: what is there, of which all is kept that fulfils the requirements.
  RequiredWheels(Http& http, Cache& cache, const std::vector<std::string>& indexes,
                 const MachineFacts& machine, std::vector<Distribution> installed);

  // Whether one of them has a library of that name, directly required or not.
  Brought bring(const WheelClaims& wheel, const std::vector<std::string>& extras,
                const std::string& library);

  // Whether one of them has a module; `google.utils` is google/utils.
  Brought bring_module(const WheelClaims& wheel, const std::vector<std::string>& extras,
                       const std::string& module);

  bool has_here(const std::string& name) const { return installed_.contains(name); }

  // A requirement of the wheel's own that the indexes surely cannot fulfil here; empty: none.
  std::string unmet(const WheelClaims& wheel, const std::vector<std::string>& extras);

  // A requirement among them that the newest of what else is required does not fulfil: then an
  // installer takes another version of one of the two.
  Reason conflict(const WheelClaims& wheel, const std::vector<std::string>& extras);

  // A library of a required wheel that the NumPy which is here, and stays, does not suit. Wheels
  // that say which NumPy they require are taken at their word.
  Reason numpy_clash(const WheelClaims& wheel, const std::vector<std::string>& extras);

  // The files of required wheels that `is_wanted` picks by the names of their files.
  std::vector<WheelFiles> files_of(const WheelClaims& wheel, const std::vector<std::string>& extras,
                                   const OtherModules::IsWanted& is_wanted);

  // The version of a distribution that the wheel will meet; empty: it requires none, and none is
  // here. Nothing: it cannot be told.
  std::optional<std::string> version_of(const WheelClaims& wheel, const std::string& name);

 private:
  // The one that fulfils a requirement: installed, or the best file of the index.
  struct Chosen {
    std::string version;
    std::vector<std::string> requires_dist;
    WheelFiles files;
    bool known = false;    // there is one, and it could be read
    bool is_none = false;  // the indexes were read, and have none
    Reason numpy_clash = {};
  };

  // How much of it is read; those for any machine have no libraries.
  enum class Depth { version, requirements, libraries, files, numpy };

  // Visits what is required, directly or not, until `visit` says that it is enough. Nothing: that
  // came to pass; else whether all that is required was known.
  using Visit = std::function<bool(const Requirement& requirement, const Chosen& chosen)>;
  std::optional<bool> walk(const WheelClaims& wheel, const std::vector<std::string>& extras,
                           Depth depth, const Visit& visit);
  Brought bring(const WheelClaims& wheel, const std::vector<std::string>& extras, Depth depth,
                const OtherModules::IsWanted& is_it);
  const Chosen& choose(const std::string& name, const std::string& specifiers, Depth depth);
  Chosen look_up(const std::string& name, const std::string& specifiers, Depth depth);
  Reason numpy_clash_of(const Candidate& wheel) const;
  bool holds_here(const std::string& marker, const std::vector<std::string>& extras) const;

  Http& http_;
  Cache& cache_;
  const std::vector<std::string>& indexes_;
  const MachineFacts& machine_;
  std::map<std::string, Distribution> installed_;
  std::map<std::tuple<std::string, std::string, Depth>, Chosen> known_;
};

// The CUDA that a torch brings, from its version (2.15.0+cu130) or from what it requires: 13.0;
// empty: none.
std::string cuda_of_torch(const WheelClaims& torch, const MachineFacts& machine);
Result<std::string> cuda_of_torch(Http& http, Cache& cache, Candidate torch,
                                  const MachineFacts& machine);

// The torch that a wheel asks for and that is not installed here, as an index knows it.
class TorchLookup {
 public:
  TorchLookup(Http& http, Cache& cache, const std::vector<std::string>& indexes,
              const MachineFacts& machine)
      : http_(http), cache_(cache), indexes_(indexes), machine_(machine) {}

  // With the CUDA that it brings. Its version may name that itself: 2.15.0+cu130. Several threads
  // may ask; each version is looked up once.
  Result<TorchFacts> find(const std::string& version);

  // Says that it will be asked.
  void expect();

 private:
  Result<TorchFacts> look_up(const std::string& version);

  Http& http_;
  Cache& cache_;
  const std::vector<std::string>& indexes_;
  const MachineFacts& machine_;
  std::once_flag expected_;
  std::mutex mutex_;
  std::map<std::string, Result<TorchFacts>> known_;  // by version
};

}  // namespace wheelscope
