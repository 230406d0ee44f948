// Whether what is installed in an environment would load there: each module by the loader's rules,
// in a process of that Python, after torch where the package builds on torch. A distribution loads
// if an import of its packages does; modules that such an import does not need are its optional
// parts.
#pragma once

#include "answers/explain.h"
#include "machine/distributions.h"
#include "verdicts/verdicts.h"

namespace wheelscope {

// From best to worst. `depends`: a library is in the environment, but no search leads there, so
// that Python code has to load it before.
enum class Loads { yes, depends, no };

// One library that does not load, or not by itself.
struct BrokenLibrary {
  std::string path;
  Loads loads = Loads::no;
  bool optional = false;  // an import of its package does not open it, or goes on without it
  Explanation explanation;
};

// A GPU of the machine that a library has no code for.
struct UnservedGpu {
  std::string library, gpu, capability;
};

struct DistributionVerdict {
  Distribution distribution;
  std::uint64_t libraries = 0, opened = 0;  // ELF files; those that Python or torch opens
  Loads loads = Loads::yes;                 // an import of the package
  std::vector<BrokenLibrary> broken;
  std::string imports;  // the distribution that it imports and that does not load; empty: none
  std::vector<std::string> unmet;  // requirements that the installed versions do not fulfil
  std::vector<UnservedGpu> unserved;

  bool is_sound() const { return loads == Loads::yes && unmet.empty() && unserved.empty(); }
};

// Where the driver's libraries are: on this disk, or on another machine that the question is about.
enum class DriverFiles { here, elsewhere };

// Every distribution with ELF files, sorted by name. `machine` must have a Python.
std::vector<DistributionVerdict> judge_environment(const MachineFacts& machine, Disk& disk,
                                                   DriverFiles driver = DriverFiles::here);

// How one search for a library went.
struct Search {
  std::string library;  // that needs it
  std::vector<SearchStep> steps;
  std::string found;  // empty: nowhere
  bool already_loaded = false;
};

// The search for a library's name by each that needs it, in the processes that judge_environment
// opens them in; the same search is told once.
std::vector<Search> searches_for(const std::string& name, const MachineFacts& machine, Disk& disk);

const char* name_of(Loads loads);

}  // namespace wheelscope
