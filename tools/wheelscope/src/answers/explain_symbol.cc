// Explains undefined symbols: whose they are, since when they exist, and what the torch here has
// instead.
#include <algorithm>
#include <set>

#include "answers/explain.h"
#include "answers/owners.h"
#include "facts/facts.h"
#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {
namespace {

enum class StringAbi { none, before_cxx11, cxx11 };

// Tells by its demangled name which of gcc's ABIs a function uses for texts.
StringAbi string_abi(const std::string& demangled) {
  if (demangled.find("std::__cxx11::") != std::string::npos) return StringAbi::cxx11;
  for (const auto* old : {"std::string", "std::basic_string<"}) {
    if (demangled.find(old) != std::string::npos) return StringAbi::before_cxx11;
  }
  return StringAbi::none;
}

// Returns c10::Error::Error for c10::Error::Error(c10::SourceLocation).
std::string without_arguments(const std::string& demangled) {
  return demangled.substr(0, demangled.find('('));
}

// Returns the first few definitions of a library with the same name and other arguments.
std::vector<std::string> variants(const LibraryFacts& library, const std::string& demangled) {
  constexpr std::size_t most = 3;
  const auto name = without_arguments(demangled);
  // The last part of the name, as mangled names have it: demangling all of them takes long.
  const auto colons = name.rfind("::");
  const auto part = colons == name.npos ? name : name.substr(colons + 2);
  const bool constructor = name.ends_with("::" + part + "::" + part);
  std::vector<std::string_view> candidates;
  for (const auto& symbol : library.symbols) {
    if (symbol.defined && symbol.name.starts_with("_Z") &&
        (constructor || symbol.name.find(part) != std::string::npos))
      candidates.push_back(symbol.name);
  }
  std::ranges::sort(candidates);
  std::set<std::string> found;
  for (const auto candidate : candidates) {
    const auto other = demangle(std::string(candidate));
    if (without_arguments(other) == name) found.insert(other);
    if (found.size() == most) break;
  }
  return {found.begin(), found.end()};
}

void compare_with_torch(const TorchFacts& torch, Disk& disk, Explanation& explanation) {
  const auto& symbol = explanation.symptom.symbol;
  const auto* library = disk.open(torch.path + "/lib/" + explanation.owner);
  const auto here = "torch " + torch.version + " here";
  if (!library) {
    explanation.say(here + " has no " + explanation.owner +
                    (torch.cuda.empty() ? ": it is a build without CUDA" : ""));
    return;
  }
  const bool defined = std::ranges::any_of(
      library->symbols, [&](const SymbolFact& one) { return one.defined && one.name == symbol; });
  if (defined) {
    explanation.say(
        here + " has it in " + explanation.owner +
        ": the message is of another torch, or torch was not imported before the library");
    return;
  }
  explanation.say(here + " does not have it");
  for (const auto& variant : variants(*library, explanation.demangled))
    explanation.say(here + " has " + variant);
}

void explain_cxx_abi(const MachineFacts* machine, Explanation& explanation) {
  const auto abi = string_abi(explanation.demangled);
  if (abi == StringAbi::none) return;
  const bool cxx11 = abi == StringAbi::cxx11;
  explanation.say(cxx11 ? "it was compiled for gcc's C++11 ABI (std::__cxx11::string)"
                        : "it was compiled for gcc's ABI from before C++11 (std::string)");
  if (!machine || !machine->torch || !machine->torch->cxx11_abi) return;
  if (*machine->torch->cxx11_abi != cxx11)
    explanation.say("torch " + machine->torch->version + " here uses the other one");
}

void explain_torch_symbol(const MachineFacts* machine, Disk& disk, Explanation& explanation) {
  const auto& symbol = explanation.symptom.symbol;
  if (explanation.symptom.library.contains("/torch/lib/lib") ||
      explanation.symptom.library.contains("/torch/_C")) {
    explanation.say("both are parts of torch: libraries of two torches are mixed");
    explanation.advise(
        "pip uninstall -y torch until there is none, delete what is left of its folder, and "
        "install "
        "it again; with conda: a new environment");
    explanation.advise(
        "unset LD_LIBRARY_PATH; `ldd FILE | grep -E 'torch|c10'` shows a copy from another place "
        "(/usr/local/lib): remove it");
    return;
  }
  if (const auto shim = torch_shims().find(symbol); shim != torch_shims().end()) {
    explanation.say("it is a function of torch's stable ABI since torch " +
                    std::string(shim->second.first_version));
    explanation.advise("install torch " + std::string(shim->second.first_version) + " or newer");
  } else {
    explanation.say(
        "it is part of torch's C++ ABI, which changes with every minor version of torch");
    explain_cxx_abi(machine, explanation);
  }
  if (explanation.owner == "libtorch_python.so" && symbol.starts_with("THP")) {
    explanation.say(
        "every torch has functions of this kind: most often torch was not imported before the "
        "module, and its libraries were not loaded");
    explanation.advise("import torch before the module: that loads torch's libraries");
  }
  if (machine && machine->torch) compare_with_torch(*machine->torch, disk, explanation);
  const auto torch = machine && machine->torch ? " (" + machine->torch->version + ")" : "";
  explanation.advise("install the build of the package that was made for the torch here" + torch +
                     ", with the same C++ ABI and CUDA, or the torch that it was made for");
  explanation.advise("or build it here: pip install --no-binary=NAME --no-build-isolation NAME");
  if (explanation.owner == "libtorch_python.so")
    explanation.advise(
        "a library of your own: link it to torch_python, which CMake's find_package(Torch) leaves "
        "out");
  if ((!machine || !machine->torch) && !symbol.starts_with("THP"))
    explanation.advise("import torch before the module: that loads torch's libraries");
}

void explain_python_symbol(const MachineFacts* machine, Explanation& explanation) {
  const auto& symptom = explanation.symptom;
  const auto& symbol = symptom.symbol;
  const auto limited = python_abi3().find(symbol);
  explanation.owner = "Python";
  if (limited != python_abi3().end())
    explanation.say("it is part of Python's limited API since Python " +
                    std::string(limited->second));
  else
    explanation.say(
        "it is no part of Python's limited API: it may come and go with any version of Python");
  if (machine && machine->python)
    explanation.say("Python here is " + machine->python->version + " (" + machine->python->abi +
                    ")");
  if (symbol.starts_with("Py_InitModule4") || symbol.contains("TraceRefs")) {
    explanation.advise(
        "use the ordinary interpreter for ordinary modules, a debug one for those of -dbg packages "
        "alone, and Python 2 for modules of Python 2");
    explanation.say(
        "Py_InitModule4 is Python 2's, and its name differs between kinds of Python: 64-bit ones "
        "have _64, debug builds (python2.7-dbg, which prints \"[N refs]\") have TraceRefs");
  }
  if (limited != python_abi3().end() && limited->second == "3.2") {
    explanation.say(
        "every Python 3 has it: the module was loaded where Python's own symbols are not seen");
    explanation.advise(
        symptom.kind == "symbol-on-macos"
            ? "run it with the Python that it was built for (the folder of its name, or `otool -L "
              "FILE`): Python 2, or one of another place, does not have the symbol in its view"
            : "nothing, if `ldd` printed it: ldd does not load Python");
    explanation.advise(
        "a program that embeds Python: link it to libpython, or open that with RTLD_GLOBAL");
  }
  explanation.advise(
      "install the package again with the pip of this Python, or update Python to the newest "
      "release of its minor version");
  if (limited == python_abi3().end())
    explanation.advise(
        "or a newer release of the package: one that was written for an older Python may use what "
        "this one removed");
}

// Returns libcublasLt for cublasLtMatmul: the longest name that the symbol starts with.
std::string cuda_library_of(std::string_view symbol) {
  while (symbol.starts_with('_')) symbol.remove_prefix(1);
  std::string_view best;
  for (const auto& [library, facts] : cuda_libraries()) {
    const auto stem = library.substr(3, library.find(".so") - 3);
    if (symbol.starts_with(stem) && stem.size() > best.size()) best = stem;
  }
  if (symbol.starts_with("nvtx")) best = "nvToolsExt";
  if (best.empty() && symbol.starts_with("cuda") && symbol.size() > 4 && symbol[4] < 'a')
    best = "cudart";
  return best.empty() ? "" : "lib" + std::string(best);
}

void explain_used_library(Explanation& explanation) {
  explanation.say("by its name it belongs to " + explanation.owner +
                  ": another version of it was found than the file was built with (the system's, "
                  "conda's, an older build of your own), or the file was not linked to it");
  explanation.advise(
      "take both from one place, all of PyPI or all of one conda channel: pip install "
      "--force-reinstall --no-cache-dir NAME");
  explanation.advise(
      "`ldd FILE` (macOS: otool -L FILE) shows which copy is found: unset LD_LIBRARY_PATH, or "
      "remove the one that comes first");
  explanation.advise(
      "a package that was built here: build it again, from clean sources, against the one that is "
      "here, and link it (-l, target_link_libraries)");
}

void explain_other_symbol(const MachineFacts* machine, Explanation& explanation) {
  const auto& symptom = explanation.symptom;
  const auto platform = platform_symbols().find(symptom.symbol);
  if (!symptom.version.empty() && symptom.version.starts_with("lib")) {
    explanation.owner = symptom.version;
  } else if (symptom.version.starts_with("GLIBCXX_") || symptom.version.starts_with("CXXABI_")) {
    explanation.owner = "libstdc++.so.6";
  } else if (symptom.version.starts_with("GLIBC_")) {
    explanation.owner = "libc.so.6";
  } else if (is_driver_symbol(symptom.symbol)) {
    explanation.owner = "libcuda.so.1";
    explanation.say(
        "it is a function of the NVIDIA driver, which is older than the library expects" +
        (machine && !machine->driver.empty() ? ": " + machine->driver + " here" : ""));
    explanation.advise("install a newer driver");
    return;
  } else if (platform != platform_symbols().end()) {
    explanation.owner = platform->second;
  } else if (is_cxx_runtime_symbol(symptom.symbol)) {
    explanation.owner = "libstdc++.so.6";
  } else {
    explanation.owner = cuda_library_of(symptom.symbol);
  }
  if (explanation.owner.empty()) {
    explanation.owner = library_by_name(symptom.symbol);
    if (!explanation.owner.empty()) return explain_used_library(explanation);
    explanation.say(
        symptom.kind == "symbol-on-macos"
            ? "it is neither Python's nor torch's: it is the package's own, or of a library or a "
              "framework of macOS that it was not linked to"
            : "it is neither Python's, torch's, CUDA's nor the system's: it is the package's own, "
              "or of a library that it uses");
    explanation.advise(
        "a package that was built here: build it again from clean sources, with every source file "
        "and library; an older copy of its library may have been found first");
    explanation.advise(
        "otherwise install it again, or another version: pip install --force-reinstall "
        "--no-cache-dir NAME");
    explanation.advise(
        "`wheelscope link PACKAGE.whl ITS-REQUIREMENTS...` tells which of them should have it");
    return;
  }
  explanation.say("a " + explanation.owner +
                  " without it was loaded: another version than the library was linked with");
  if (explanation.owner == "libstdc++.so.6") {
    explanation.say("most often the one that was loaded is older than the gcc that built the file");
    explanation.advise(
        "a newer libstdc++.so.6: in a conda environment, conda install -c conda-forge "
        "libstdcxx-ng, and LD_LIBRARY_PATH=$CONDA_PREFIX/lib; or a build of the package for an "
        "older system (its wheel)");
  }
  const auto cuda = machine && machine->torch ? machine->torch->cuda : std::string();
  const bool numbered = explanation.owner.contains('.');  // else any version of torch's CUDA
  std::set<std::string> names;
  for (const auto& [library, entry] : cuda_libraries()) {
    const bool same_cuda = cuda.empty() || entry.cuda == major_of(cuda);
    if (numbered ? library == explanation.owner
                 : same_cuda && library.starts_with(explanation.owner + "."))
      names.emplace(entry.distribution);
  }
  if (const auto all = joined({names.begin(), names.end()}, " or "); !all.empty()) {
    explanation.say("the environment's own comes with " + all);
    explanation.advise("if that is older than what the library was built with: pip install -U " +
                       all + " (`pip check` shows who requires which)");
  }
  explanation.advise(
      "look for another copy: unset LD_LIBRARY_PATH, or see what LD_DEBUG=libs says");
  if (explanation.owner.starts_with("libcu") || explanation.owner.starts_with("libnv"))
    explanation.advise(
        "libraries of CUDA go together by release: take all from one place, pip's (pip install "
        "--force-reinstall --no-cache-dir torch), conda's or the system's");
}

// Explains a message of musl's loader on Alpine Linux, mostly about files that were made for glibc.
void explain_symbol_on_musl(Explanation& explanation) {
  const auto& symbol = explanation.symptom.symbol;
  explanation.say("the message is musl's: the system is Alpine Linux, or like it");
  if (is_cxx_runtime_symbol(symbol) && !platform_symbols().contains(symbol)) {
    explanation.owner = "libstdc++.so.6";
    explanation.advise("apk add libstdc++");
  } else {
    explanation.say(
        "glibc has this function, musl has not, or only in newer releases: the file was made for "
        "glibc or for a newer musl");
  }
  explanation.advise(
      "install the musllinux wheel of the package with the pip of this Python, or build it here");
  explanation.advise(
      "or use an image with glibc: python:3-slim, not python:3-alpine; or a newer Alpine");
}

}  // namespace

void ask_symbol(const Asked& asked, Explanation& explanation) {
  auto& symptom = explanation.symptom;
  if (symptom.symbol.starts_with("__Z")) symptom.symbol.erase(0, 1);  // as macOS writes them
  explanation.demangled = demangle(symptom.symbol);
  symptom.set("wanted", explanation.demangled +
                            (symptom.version.empty() ? "" : " in version " + symptom.version));
  explanation.owner = torch_library_of(symptom.symbol);
  if (!explanation.owner.empty())
    explain_torch_symbol(asked.machine, asked.disk, explanation);
  else if (is_python_symbol(symptom.symbol))
    explain_python_symbol(asked.machine, explanation);
  else if (symptom.kind == "musl-symbol")
    explain_symbol_on_musl(explanation);
  else
    explain_other_symbol(asked.machine, explanation);
}

}  // namespace wheelscope
