// What `atlas` says of a project: its newest releases, each against every torch, CUDA and Python.
#pragma once

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

}  // namespace wheelscope
