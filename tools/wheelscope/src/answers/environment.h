// Tells whether the packages of an environment would load: each module by the loader's rules, in a
// process of that Python, after torch if the package builds on torch. A distribution loads if an
// import of its packages does; modules that such an import does not need are its optional parts.
#pragma once

#include <algorithm>

#include "answers/explain.h"
#include "answers/wheel_imports.h"
#include "machine/distributions.h"
#include "machine/python_source.h"
#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {

// From best to worst; `yes` and `no` are proved. `depends`: Python code decides, in a way that its
// text does not tell.
enum class Loads { yes, depends, no };

// Why a library does not load, or not for sure:
//   loader    the dynamic loader stops: a library, a version or a symbol is missing
//   elsewhere the same, but the environment has the library, and Python code may load it before
//   numpy     it was built for another NumPy
//   torch_layout  it loads, but may look for a tensor's fields where another torch has them
//   file      the file is damaged, missing, for another processor or another Python
enum class Trouble { loader, elsewhere, numpy, torch_layout, file };

// One library that does not load, or not by itself; or a lost file of Python code.
struct BrokenLibrary {
  std::string path;
  Loads loads = Loads::no;
  Trouble trouble = Trouble::loader;
  Need need = Need::always;  // whether an import of its package fails with it
  Explanation explanation;
};

// Python's own answer to an import (`env --import`).
struct ImportResult {
  std::string name;
  std::string error;  // empty: it was imported
};

// A GPU of the machine that a library has no code for.
struct UnservedGpu {
  std::string library, gpu, capability;
};

// A requirement that the installed packages do not fulfil.
struct UnmetRequirement {
  std::string requirement;  // as METADATA has it; of Python, its versions
  std::string installed;    // the version that is here; empty: none
  bool of_python = false;
  std::string by = {};  // a distribution that is imported; empty: the one itself
};

struct DistributionVerdict {
  Distribution distribution;
  std::uint64_t libraries = 0, opened = 0;  // ELF files; those that Python or torch opens
  Loads loads = Loads::yes;                 // an import of the package
  std::vector<BrokenLibrary> broken;
  std::string imports;  // the distribution that it imports and that does not load; empty: none
  Refusal refusal;      // of its own Python code
  std::vector<OddFile> files;          // changed since they were installed
  std::vector<ImportResult> imported;  // if Python was asked
  std::vector<UnmetRequirement> unmet;
  std::vector<UnservedGpu> unserved;

  bool fails_to_import() const {
    return std::ranges::any_of(imported, [](const auto& one) { return !one.error.empty(); });
  }
  bool is_sound() const {
    return loads == Loads::yes && unmet.empty() && unserved.empty() && files.empty() &&
           !fails_to_import();
  }
};

// Where the driver's libraries are: on this disk, or on the other machine in question.
enum class DriverFiles { here, elsewhere };

// Judges every distribution with ELF files or odd ones, sorted by name. `machine` must have a
// Python.
std::vector<DistributionVerdict> judge_environment(const MachineFacts& machine, Disk& disk,
                                                   DriverFiles driver = DriverFiles::here);

// The steps and result of one search for a library.
struct Search {
  std::string library;  // the library that needs it
  std::vector<SearchStep> steps;
  std::string found;  // empty: nowhere
  bool already_loaded = false;
};

// Returns the search for a library's name by each library that needs it, in the processes that
// judge_environment opens them in. The same search is returned only once.
std::vector<Search> searches_for(const std::string& name, const MachineFacts& machine, Disk& disk);

NAMES(Loads, "yes", "depends", "no")
NAMES(Trouble, "loader", "elsewhere", "numpy", "torch_layout", "file")

}  // namespace wheelscope
