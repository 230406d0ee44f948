// The torch that a wheel asks for and that is not installed here, as an index knows it.
#pragma once

#include <map>
#include <mutex>

#include "facts/facts.h"
#include "facts/machine.h"
#include "source/cache.h"
#include "source/http.h"

namespace wheelscope {

// The CUDA that a torch brings, from its version (2.15.0+cu130) or from what it requires: 13.0;
// empty: none.
std::string cuda_of_torch(const WheelClaims& torch, const MachineFacts& machine);

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
