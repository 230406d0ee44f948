// Explains libraries that are not found or are too old: whose they are, and what is here instead.
#include <algorithm>

#include "answers/explain.h"
#include "answers/providers.h"
#include "answers/suppliers.h"
#include "tables/tables.h"
#include "text/dotted_version.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// The newest version of a kind (GLIBCXX) that a file defines: 3.4.29
std::string newest_version(const LibraryFacts& library, const std::string& kind) {
  std::string newest;
  for (const auto& version : library.version_definitions) {
    const auto number = version.starts_with(kind + "_") ? version.substr(kind.size() + 1) : "";
    if (!number.empty() && number.find_first_not_of("0123456789.") == number.npos &&
        older(newest, number))
      newest = number;
  }
  return newest;
}

// libcudart for libcudart.so.12 and libcudart-1a2b3c4d.so.12
std::string stem_of(const std::string& library) {
  return library.substr(0, library.find_first_of("-."));
}

void explain_torch_library(const std::string& name, const MachineFacts* machine,
                           Explanation& explanation) {
  explanation.provider = "torch";
  const bool cuda = name.find("cuda") != name.npos;
  if (machine && machine->torch) {
    const auto& torch = *machine->torch;
    explanation.because.push_back(
        "torch " + torch.version + " here is " +
        (torch.cuda.empty() ? "a build without CUDA" : "built for CUDA " + torch.cuda));
    if (cuda && torch.cuda.empty()) {
      explanation.because.push_back(name + " is in CUDA builds of torch alone");
      explanation.mend.emplace_back("install a CUDA build of torch, or a CPU build of the package");
      return;
    }
  } else if (machine) {
    explanation.because.emplace_back("there is no torch in the environment here");
  }
  explanation.mend.emplace_back(
      "import torch before the package: torch loads its libraries, and a search for them then ends "
      "there");
  explanation.mend.emplace_back("if torch lacks the file, the package was made for another torch");
}

// Whether a distribution for this CUDA (a version, or nothing) has the library.
bool comes_with_cuda(const std::string& library, const std::string& cuda) {
  const auto [first, last] = cuda_libraries().equal_range(library);
  return std::any_of(first, last, [&](const auto& entry) {
    return entry.second.cuda == cuda.substr(0, cuda.find('.'));
  });
}

void explain_cuda_library(const std::string& name, const MachineFacts* machine,
                          Explanation& explanation) {
  const auto cuda = machine && machine->torch ? machine->torch->cuda : std::string();
  const auto distributions = cuda_distributions_of(name, cuda);
  explanation.provider = joined(distributions, " or ");
  if (!distributions.empty())
    explanation.because.push_back("on PyPI it comes with " + explanation.provider);
  if (machine) {
    bool here = false;
    for (const auto& library : machine->cuda_libraries) {
      if (library.name == name) {
        explanation.because.push_back("the environment here has it: " + library.path +
                                      "; no RPATH leads there");
        explanation.mend.emplace_back(
            "import torch before the package: it loads the libraries of its CUDA");
        here = true;
      } else if (stem_of(library.name) == stem_of(name) && library.name != name) {
        explanation.because.push_back("the environment here has another version: " + library.name +
                                      " of " + library.distribution + " " + library.version);
      }
    }
    if (!cuda.empty())
      explanation.because.push_back("torch " + machine->torch->version +
                                    " here is built for CUDA " + cuda);
    if (here) return;
  }
  if (comes_with_cuda(name, cuda)) {
    explanation.because.emplace_back(
        "torch requires it: a part of its CUDA was removed or replaced");
    explanation.mend.push_back("pip install " + explanation.provider +
                               " in the version that torch requires (`pip check` names it)");
    return;
  }
  explanation.mend.emplace_back(
      "take the build of the package for the CUDA that torch is built for");
  if (!distributions.empty())
    explanation.mend.push_back("or pip install " + explanation.provider +
                               ", and put the folder of its library into LD_LIBRARY_PATH");
}

}  // namespace

void explain_missing_library(const MachineFacts* machine, Explanation& explanation) {
  const auto name = base_name(explanation.symptom.needs);
  explanation.what =
      (explanation.symptom.library.empty() ? "A library that was loaded"
                                           : base_name(explanation.symptom.library)) +
      " needs " + name + ", and the loader finds no such file.";
  if (is_driver_library(name)) {
    explanation.provider = "the NVIDIA driver";
    explanation.because.emplace_back("it is part of the NVIDIA driver; no package has it");
    if (machine && machine->driver.empty())
      explanation.because.emplace_back("there is no driver on this machine");
    explanation.mend.emplace_back(
        "run on a machine with a GPU and its driver; in a container, start it with --gpus all");
  } else if (is_torch_library(name)) {
    explain_torch_library(name, machine, explanation);
  } else if (!cuda_distributions_of(name).empty() || stem_of(name) == "libcudart" ||
             stem_of(name) == "libcublas" || stem_of(name) == "libcudnn") {
    explain_cuda_library(name, machine, explanation);
  } else if (name.starts_with("libpython")) {
    explanation.provider = "Python";
    explanation.because.emplace_back(
        "the module is linked to a shared Python library; not every Python has one, and each has "
        "its own version");
    explanation.mend.emplace_back("install a build of the package that was made for this Python");
  } else {
    explanation.provider = is_platform_library(name) ? "the system" : "";
    explanation.because.emplace_back(
        is_platform_library(name)
            ? "it is a library of the system that wheels may count on; minimal images leave it out"
            : "it is neither torch's, nor CUDA's, nor one that every Linux has");
    explanation.mend.emplace_back("install the system's package that has " + name +
                                  " (`apt-file search " + name + "`, `dnf provides '*/" + name +
                                  "'`)");
  }
}

void explain_missing_version(const MachineFacts* machine, Disk& disk, Explanation& explanation) {
  const auto& symptom = explanation.symptom;
  const auto line = symptom.version.rfind('_');
  const auto kind = symptom.version.substr(0, line);
  const auto number = line == symptom.version.npos ? "" : symptom.version.substr(line + 1);
  explanation.provider = base_name(symptom.needs);
  explanation.what = (symptom.library.empty() ? "A library" : base_name(symptom.library)) +
                     " needs " + symptom.version + " of " + explanation.provider +
                     ", and the one that was loaded, " + symptom.needs + ", is older.";
  if (kind == "GLIBC") {
    explanation.because.push_back("it runs with glibc " + number +
                                  " and newer ones, whatever the tag of its wheel says");
    if (machine && machine->libc == "glibc")
      explanation.because.push_back(
          "glibc here is " + machine->libc_version +
          (older(machine->libc_version, number) ? "" : ": the message is of another machine"));
    explanation.mend.emplace_back(
        "take a build for an older system: one whose tag has manylinux_2_N with N at most that of "
        "the glibc there");
    explanation.mend.emplace_back(
        "or build the package on that system; a C library comes with its system alone");
    return;
  }
  if (machine && symptom.needs.starts_with('/')) {
    if (const auto* library = disk.open(symptom.needs)) {
      if (const auto newest = newest_version(*library, kind); !newest.empty())
        explanation.because.push_back(symptom.needs + " here goes up to " + kind + "_" + newest);
    }
  }
  if (kind == "GLIBCXX" || kind == "CXXABI") {
    explanation.because.emplace_back("libstdc++ comes with gcc, and each gcc adds versions to it");
    explanation.mend.emplace_back(
        "use a newer libstdc++.so.6: in a conda environment, conda install -c conda-forge "
        "libstdcxx-ng; otherwise the system's package of a newer gcc");
    explanation.mend.emplace_back(
        "if the system's own is newer than the one in the message, an environment or "
        "LD_LIBRARY_PATH put the older one first");
    return;
  }
  explanation.mend.push_back("install a " + explanation.provider + " that has " + symptom.version +
                             ", or a build of the package for the one that is here");
}

}  // namespace wheelscope
