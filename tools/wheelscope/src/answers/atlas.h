// What `atlas` says of a project: its newest releases, each against every torch, CUDA and Python.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "answers/fit.h"

namespace wheelscope {

// A wheel for Linux with glibc, as far as it was read.
struct AtlasFile {
  std::string file;
  std::uint64_t size = 0, read = 0;
  std::string problem;  // why it could not be read
  TorchVerdict torch;
  std::uint64_t known_symbols = 0;               // of the C++ symbols that it needs: in some torch
  std::map<std::string, std::uint64_t> lacking;  // torch -> how many of those it does not have
  PythonVerdict python;
  std::string platform;                     // the tag that its libraries deserve
  std::vector<std::string> requires_torch;  // as METADATA has it
  bool uses_device_code = false;
  std::vector<GpuVerdict> gpus;  // empty: it has no device code, or that was not read
};

// A torch with one CUDA, and the Pythons on which the verdict is the same.
struct AtlasCell {
  std::string torch, cuda;  // 2.15; cpu, 12, 13
  std::vector<std::string> pythons;
  Fits fits = Fits::works;
  Obstacle obstacle = Obstacle::none;
  Reason reason;
};

// Something that the wheels promise, and do not keep.
struct AtlasClaim {
  std::string id;  // torch, default, requirement; else that of a finding of `check`
  std::string what;
  std::vector<std::string> torches;  // that it is about: 2.15
};

struct AtlasRelease {
  std::string version;
  std::uint64_t wheels = 0;         // of all systems
  std::uint64_t linux_wheels = 0;   // for Linux with glibc
  std::string sdist;                // empty: there is none
  std::uint64_t architectures = 0;  // of Linux with glibc
  std::vector<AtlasFile> files;
  std::vector<AtlasCell> cells;
  std::vector<AtlasClaim> claims;  // that are false
};

struct AtlasProject {
  std::string name;
  std::vector<AtlasRelease> releases;  // the newest first
  std::string problem;                 // why it could not be read
};

// What the next torch may break. Its symbols cannot be known, and by name the symbols that went
// were no others than those that stayed: a release's risk is how many of them it needs. So a
// forecast is the share of releases with as many symbols that a new torch broke before.

// A release on torch's C++ ABI.
struct BoundRelease {
  std::uint64_t symbols = 0;  // of torch, that it needs
  std::vector<bool> loads;    // with each torch, the oldest first: all of them are there
};

// Of releases that loaded with a torch, how many did not with the one after it.
struct Breaks {
  std::uint64_t loaded = 0, broke = 0;

  double rate() const {
    return loaded ? static_cast<double>(broke) / static_cast<double>(loaded) : 0;
  }
};

// Releases with about as many symbols; each class begins with a number of them.
inline constexpr std::array<std::uint64_t, 4> forecast_classes{1, 15, 40, 100};
std::size_t class_of(std::uint64_t symbols);

struct Forecast {
  std::array<Breaks, forecast_classes.size()> classes;
  Breaks all;

  // Of the last five changes of torch up to this one, by its number in `loads`.
  Forecast(const std::vector<BoundRelease>& releases, std::size_t torch);

  const Breaks& of(const BoundRelease& release) const { return classes[class_of(release.symbols)]; }

  // More often than releases on the whole.
  bool expects_break(const BoundRelease& release) const { return of(release).rate() > all.rate(); }
};

// What it would have said before a torch, and what came of it.
struct BackTest {
  Breaks all, expected;  // expected: of those alone that were expected to break
};
BackTest back_test(const std::vector<BoundRelease>& releases, std::size_t torch);

}  // namespace wheelscope
