// The answer of `atlas` for a project: its newest releases, each judged for every torch, CUDA and
// Python.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "answers/fit.h"

namespace wheelscope {

// The facts that were read of a wheel for Linux with glibc.
struct AtlasFile {
  std::string file;
  std::uint64_t size = 0, read = 0;
  std::string problem;  // why it could not be read
  TorchVerdict torch;
  std::uint64_t known_symbols = 0;               // needed C++ symbols that some torch has
  std::map<std::string, std::uint64_t> lacking;  // torch -> how many of those it lacks
  PythonVerdict python;
  std::string platform;                     // the tag that its libraries justify
  std::vector<std::string> requires_torch;  // as METADATA spells it
  bool uses_device_code = false;
  std::vector<GpuVerdict> gpus;  // empty: no device code, or it was not read
};

// A torch with one CUDA, and the Pythons that share its verdict.
struct AtlasCell {
  std::string torch, cuda;  // 2.15; cpu, 12, 13
  std::vector<std::string> pythons;
  Fits fits = Fits::works;
  Obstacle obstacle = Obstacle::none;
  Reason reason;
};

// A promise that the wheels do not keep.
struct AtlasClaim {
  std::string id;  // torch, default, requirement, or the id of a finding of `check`
  std::string what;
  std::vector<std::string> torches;  // the versions that it is about: 2.15
};

struct AtlasRelease {
  std::string version;
  std::uint64_t wheels = 0;         // for any system
  std::uint64_t linux_wheels = 0;   // for Linux with glibc
  std::string sdist;                // empty: there is none
  std::uint64_t architectures = 0;  // that have wheels for Linux with glibc
  std::vector<AtlasFile> files;
  std::vector<AtlasCell> cells;
  std::vector<AtlasClaim> false_claims;
};

struct AtlasProject {
  std::string name;
  std::vector<AtlasRelease> releases;  // the newest first
  std::string problem;                 // why it could not be read
};

// Forecasts what the next torch may break. Nobody knows its symbols yet, and the names of removed
// symbols do not differ from those of kept ones, so a release's risk is how many symbols it needs:
// the forecast is the share of releases with about as many symbols that earlier versions of torch
// broke.

// A release on torch's C++ ABI.
struct BoundRelease {
  std::uint64_t symbols = 0;  // symbols of torch that it needs
  std::vector<bool> loads;    // for each torch, oldest first: whether all symbols are there
};

// Of the releases that loaded with one torch, counts those that failed with the next.
struct Breaks {
  std::uint64_t loaded = 0, broke = 0;

  double rate() const {
    return loaded ? static_cast<double>(broke) / static_cast<double>(loaded) : 0;
  }
};

// Classes of releases with about as many symbols; each number is the lowest of its class.
inline constexpr std::array<std::uint64_t, 4> forecast_classes{1, 15, 40, 100};
std::size_t class_of(std::uint64_t symbols);

struct Forecast {
  std::array<Breaks, forecast_classes.size()> classes;
  Breaks all;

  // Counts the last five changes of torch up to `torch`, a position in `loads`.
  Forecast(const std::vector<BoundRelease>& releases, std::size_t torch);

  const Breaks& of(const BoundRelease& release) const { return classes[class_of(release.symbols)]; }

  // True if such releases broke more often than releases on the whole.
  bool expects_break(const BoundRelease& release) const { return of(release).rate() > all.rate(); }
};

// Compares what a forecast would have said before a torch with what happened.
struct BackTest {
  Breaks all, expected;  // expected: only releases that were expected to break
};
BackTest back_test(const std::vector<BoundRelease>& releases, std::size_t torch);

}  // namespace wheelscope
