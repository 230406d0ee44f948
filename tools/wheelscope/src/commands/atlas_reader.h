// Reads the newest releases of a project from an index, and judges them for every existing torch,
// CUDA and Python, with the code of `fit` and made-up machines.
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

namespace wheelscope {

// The exports of a torch on an index, read from its wheel once and kept as hashes of names. With
// it, `atlas` can ask of every torch what `fit` asks of the installed one.
struct TorchTable {
  std::string minor, version;                        // 2.14, and its newest release 2.14.1
  std::string cuda;                                  // the CUDA of the index's build; empty: none
  std::vector<std::string> pythons;                  // 3.13, 3.14t: the Pythons with a wheel
  std::vector<std::uint64_t> symbols, cuda_symbols;  // sorted hashes; the latter are of CUDA builds

  bool has(std::string_view symbol, bool with_cuda) const;

  // Returns the builds of this torch by the CUDA table: cpu, 12, 13.
  std::vector<std::string> builds() const;
};

// Reads the last release of each minor version that is `wanted` (>=2.0, or `newest`), for Linux
// with glibc on an architecture; oldest first.
Result<std::vector<TorchTable>> read_torch_tables(PackageIndex& index, const std::string& wanted,
                                                  const std::string& architecture);

// All machines of the atlas are a Linux of 2023 (Debian 12) with a current driver.
inline constexpr const char* atlas_architecture = "x86_64";
inline constexpr const char* atlas_glibc = "2.36";

// The files that an index has of one version.
struct ReleaseFiles {
  Version version;
  std::string spelled;
  std::vector<Candidate> wheels;  // for any system
  std::string sdist;
};

// Returns the newest versions, newest first. Withdrawn files do not count; pre-releases count only
// if there are no other versions, or if the settings say so.
Result<std::vector<ReleaseFiles>> newest_releases(PackageIndex& index, const std::string& project,
                                                  std::size_t most);

class AtlasReader {
 public:
  // The arguments must outlive the reader.
  AtlasReader(PackageIndex& index, const std::vector<TorchTable>& torches);

  // Must be called from one thread at a time.
  AtlasRelease read(const ReleaseFiles& release);

 private:
  struct User {  // a Python on such a machine
    MachineFacts machine;
    std::unique_ptr<RequiredWheels> required;
  };
  struct Wheel {
    const Candidate* candidate = nullptr;
    ExaminedWheel remote;
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

  PackageIndex& index_;
  Cache nothing_;  // keeps nothing: the answers are cached, not the bytes of wheels
  const std::vector<TorchTable>& torches_;
  std::map<std::string, User> users_;  // by Python
};

}  // namespace wheelscope
