// Reads the newest releases of a project from an index, and judges them for every torch, CUDA and
// Python that there is: with the code of `fit`, on machines that exist for the question alone.
#pragma once

#include <map>
#include <memory>

#include "answers/atlas.h"
#include "commands/remote_wheel.h"
#include "commands/required_wheels.h"
#include "commands/torch_tables.h"
#include "index/candidates.h"

namespace wheelscope {

// What all machines of the atlas have: a Linux of 2023 (Debian 12) with a current driver.
inline constexpr const char* atlas_architecture = "x86_64";
inline constexpr const char* atlas_glibc = "2.36";

// What an index has of one version.
struct ReleaseFiles {
  Version version;
  std::string spelled;
  std::vector<Candidate> wheels;  // of all systems
  std::string sdist;
};

// The newest versions first. Withdrawn files do not count, pre-releases where there are no others.
Result<std::vector<ReleaseFiles>> newest_releases(Http& http,
                                                  const std::vector<std::string>& indexes,
                                                  const std::string& project, std::size_t most);

class AtlasReader {
 public:
  // All of these must outlive it.
  AtlasReader(Http& http, Cache& cache, const std::vector<std::string>& indexes,
              const std::vector<TorchTable>& torches);

  // From one thread at a time.
  AtlasRelease read(const ReleaseFiles& release);

 private:
  struct User {  // a Python on such a machine
    MachineFacts machine;
    std::unique_ptr<RequiredWheels> required;
  };
  struct Wheel {
    const Candidate* candidate = nullptr;
    RemoteWheel remote;
    bool readable = false;
    std::map<std::string, std::unique_ptr<WheelImports>> imports;  // by Python
    std::map<std::string, Refusal> refusals;
  };

  Wheel open(const Candidate& candidate, AtlasFile& file);
  FitVerdict judge(Wheel& wheel, const std::string& python, const TorchTable& torch,
                   const std::string& cuda);
  void judge_cells(std::vector<Wheel>& wheels, AtlasRelease& release);
  void find_claims(std::vector<Wheel>& wheels, AtlasRelease& release);

  Http& http_;
  Cache& cache_;
  Cache nothing_;  // bytes of wheels are not kept: what is made of them is
  const std::vector<TorchTable>& torches_;
  std::map<std::string, User> users_;  // by Python
};

}  // namespace wheelscope
