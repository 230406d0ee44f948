// Reads the newest releases of a project from an index, and judges them for every torch, CUDA and
// Python that there is: with the code of `fit`, on machines that exist for the question alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "answers/atlas.h"
#include "commands/remote_wheel.h"
#include "commands/required_wheels.h"
#include "index/candidates.h"
#include "source/cache.h"
#include "source/http.h"

namespace wheelscope {

// What each torch on an index exports, read from its wheel once and kept as hashes of names: with
// that, `atlas` asks of every torch what `fit` asks of the installed one.
struct TorchTable {
  std::string minor, version;                        // 2.14, 2.14.1: its newest release
  std::string cuda;                                  // that the index's build brings; empty: none
  std::vector<std::string> pythons;                  // 3.13, 3.14t: that it has wheels for
  std::vector<std::uint64_t> symbols, cuda_symbols;  // hashes, sorted; the latter of CUDA builds

  bool has(std::string_view symbol, bool with_cuda) const;

  // The builds that there are, of the CUDA versions that the table of CUDA names: cpu, 12, 13.
  std::vector<std::string> builds() const;
};

// Of the versions that are wanted (>=2.0, or `newest`), the last release of each minor one, for
// Linux with glibc on an architecture; the oldest first.
Result<std::vector<TorchTable>> read_torch_tables(Http& http, Cache& cache,
                                                  const std::vector<std::string>& indexes,
                                                  const std::string& wanted,
                                                  const std::string& architecture);

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
  void count_symbols(AtlasFile& file) const;
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
