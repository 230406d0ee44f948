// Explains libraries that are not found or are too old: whose they are, and what is here instead.
#include <algorithm>
#include <cctype>

#include "answers/explain.h"
#include "answers/owners.h"
#include "tables/tables.h"
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

// Returns libcudart for libcudart.so.12 and libcudart-1a2b3c4d.so.12.
std::string library_stem(const std::string& library) {
  return library.substr(0, library.find_first_of("-."));
}

void explain_torch_library(const std::string& name, const MachineFacts* machine,
                           Explanation& explanation) {
  explanation.owner = "torch";
  const bool cuda = name.find("cuda") != name.npos;
  if (name.find("_hip") != name.npos) {
    explanation.say("torch for ROCm alone has this file: the package was built for ROCm");
    explanation.advise(
        "install torch and the package for one kind of GPU, from one index: pip install "
        "--force-reinstall torch torchvision torchaudio --index-url "
        "https://download.pytorch.org/whl/cu126 (rocm6.4 for AMD)");
    return;
  }
  if (name == "libtorch_cuda_cu.so" || name == "libtorch_cuda_cpp.so") {
    explanation.say(
        "only torch 1.10 to 1.13 has this file: the package was built for one of those");
    explanation.advise(
        "install a build of the package for the torch here, or build it again with that torch");
    return;
  }
  if (machine && machine->torch) {
    const auto& torch = *machine->torch;
    explanation.say("torch " + torch.version + " here is " +
                    (torch.cuda.empty() ? "a build without CUDA" : "built for CUDA " + torch.cuda));
    if (cuda && torch.cuda.empty()) {
      explanation.say(name + " is in CUDA builds of torch alone");
      explanation.advise("install a CUDA build of torch, or a CPU build of the package");
      return;
    }
  } else if (machine) {
    explanation.say("there is no torch in the environment here");
  }
  explanation.advise(
      "import torch before the package: torch loads its libraries, and a search for them then ends "
      "there");
  explanation.advise(
      "if torch lacks the file, the package was made for another torch: install its build for the "
      "torch here, or build it again: pip install --no-build-isolation --no-cache-dir "
      "--no-binary=NAME NAME");
}

// Libraries of CUDA: those of the table in any version, and cuDNN's.
bool is_cuda_library(const std::string& name) {
  return library_stem(name).starts_with("libcudnn") ||
         std::ranges::any_of(cuda_libraries(), [&](const auto& known) {
           return library_stem(std::string(known.first)) == library_stem(name);
         });
}

// Returns the CUDA or cuDNN of a library that the table does not have: CUDA 11 for libcublas.so.11.
// cufft, curand, cusolver and cusparse have numbers of their own.
std::string release_of(const std::string& name) {
  const auto stem = library_stem(name);
  const auto number = name.find(".so.") == name.npos ? "" : name.substr(name.find(".so.") + 4);
  const auto major = major_of(number);
  if (major.empty()) return {};
  if (stem.starts_with("libcudnn")) return "cuDNN " + major;
  // Up to CUDA 10.2 a library may have the number of its release: libcufft.so.10.0.
  if (number != major && number.size() < 5 && older(number, "11")) return "CUDA " + number;
  for (const auto* own : {"libcudart", "libcublas", "libcublasLt", "libnvrtc", "libcupti"}) {
    if (stem == own) return "CUDA " + major;
  }
  return name == "libcufft.so.10" || name == "libcusparse.so.11" ? "CUDA 11" : "";
}

// The distributions that had a library of CUDA 11 or cuDNN 8.
std::vector<std::string> former_distributions(const std::string& name) {
  const auto release = release_of(name);
  if (release == "cuDNN 8") return {"nvidia-cudnn-cu12<9"};
  if (release != "CUDA 11") return {};
  for (const auto& [library, entry] : cuda_libraries()) {
    const auto distribution = std::string(entry.distribution);
    if (entry.cuda == "12" && library_stem(std::string(library)) == library_stem(name) &&
        distribution.ends_with("-cu12"))
      return {distribution.substr(0, distribution.size() - 1) + "1"};
  }
  return {};
}

// True if a distribution for this CUDA (a version, or empty) has the library.
bool comes_with_cuda(const std::string& library, const std::string& cuda) {
  const auto [first, last] = cuda_libraries().equal_range(library);
  return std::any_of(first, last,
                     [&](const auto& entry) { return entry.second.cuda == major_of(cuda); });
}

void explain_cuda_library(const std::string& name, const MachineFacts* machine,
                          Explanation& explanation) {
  const auto cuda = machine && machine->torch ? machine->torch->cuda : std::string();
  auto distributions = cuda_distributions_of(name, cuda);
  if (distributions.empty()) distributions = former_distributions(name);
  const auto release = release_of(name);
  explanation.owner = distributions.empty() ? release : joined(distributions, " or ");
  if (!release.empty()) explanation.say("it is part of " + release);
  if (!distributions.empty()) explanation.say("on PyPI it comes with " + explanation.owner);
  if (name == "libcurand.so.10") explanation.say("CUDA 10.1 to 13 all have it by this name");
  if (machine) {
    bool here = false;
    for (const auto& library : machine->cuda_libraries) {
      if (library.name == name) {
        explanation.say("the environment here has it: " + library.path + "; no RPATH leads there");
        explanation.advise("import torch before the package: it loads the libraries of its CUDA");
        here = true;
      } else if (library_stem(library.name) == library_stem(name) && library.name != name) {
        explanation.say("the environment here has another version: " + library.name + " of " +
                        library.distribution + " " + library.version);
      }
    }
    if (!cuda.empty())
      explanation.say("torch " + machine->torch->version + " here is built for CUDA " + cuda);
    if (here) return;
  }
  if (comes_with_cuda(name, cuda)) {
    explanation.say("torch requires it: a part of its CUDA was removed or replaced");
    explanation.advise("pip install " + explanation.owner +
                       " in the version that torch requires (`pip check` names it)");
    return;
  }
  explanation.advise(cuda.empty()
                         ? "take the build of the package for the CUDA that is here; beside "
                           "torch, for that of torch"
                         : "take the build of the package for the CUDA that torch is built "
                           "for");
  if (!distributions.empty())
    explanation.advise(
        "or pip install " +
        (distributions.front().contains('<') ? "'" + explanation.owner + "'" : explanation.owner) +
        ", and put the folder of its library into LD_LIBRARY_PATH");
  else if (!release.empty())
    explanation.advise("or install " + release +
                       ", and put the folder of its library into LD_LIBRARY_PATH");
  explanation.advise(
      "on a Jetson it is JetPack's, and a container gets it by --runtime nvidia: take a torch that "
      "was built for that JetPack");
}

bool is_libc(std::string_view name) {
  for (const auto* own : {"ld-linux", "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2"}) {
    if (name.starts_with(own)) return true;
  }
  return false;
}

void explain_other_libc(bool for_musl, Explanation& explanation) {
  explanation.owner = "the C library";
  explanation.say(
      for_musl
          ? "it is musl, the C library of Alpine Linux: the file was made for musl, and this "
            "system has glibc"
          : "it is glibc, and this system has musl (Alpine Linux): the file was made for glibc");
  explanation.advise(
      for_musl ? "install the manylinux wheel of the package with the pip of this Python; a file "
                 "that was copied out of an Alpine image does not run here"
               : "install the musllinux wheel of the package if there is one, or build it here");
  if (!for_musl)
    explanation.advise("or use an image with glibc: python:3-slim, not python:3-alpine");
}

// What the place or the program in a message adds: NixOS has no folders that others search.
void explain_place(Explanation& explanation) {
  if (explanation.symptom.message.find("/nix/store/") == std::string::npos) return;
  explanation.say(
      "the file was installed by Nix: NixOS has nothing in /usr/lib, and only what the derivation "
      "names is found");
  explanation.advise(
      "Nix: add the package that has the library to the derivation or shell, and its folder to "
      "LD_LIBRARY_PATH (pkgs.lib.makeLibraryPath [...]); for files that were built elsewhere "
      "(pip's wheels) programs.nix-ld with its libraries, or buildFHSEnv; graphics and CUDA: "
      "/run/opengl-driver/lib (nixGL on other systems)");
}

// The loader says so of programs; Python's modules have other words.
bool is_programs_message(const Explanation& explanation) {
  return explanation.symptom.message.find("error while loading shared libraries") !=
         std::string::npos;
}

// A library whose packages are known; see ask_provider.
void explain_provided(Explanation& explanation) {
  const auto& symptom = explanation.symptom;
  explanation.say("it belongs to " + symptom.part("of"));
  if (const auto apt = symptom.part("apt"); !apt.empty())
    explanation.advise("apt install " + apt +
                       " (another system: the package that `dnf provides '*/" +
                       base_name(symptom.needs) + "'` or `apk search` names)");
  if (const auto pip = symptom.part("pip"); !pip.empty())
    explanation.advise("or pip install " + pip);
  if (!is_programs_message(explanation))
    explanation.advise("with conda: the package and this library from one channel (conda-forge)");
  explanation.advise(
      "if it is there, put its folder into LD_LIBRARY_PATH; another number after .so is another "
      "release: install the build of the package for the one that is here");
}

// Alpine names packages by the libraries that they have, not by links without a number.
std::string on_alpine(const std::string& name) {
  return name.ends_with(".so")
             ? " (pkgs.alpinelinux.org/contents names it; a name without a number "
               "is in a package -dev as a rule)"
             : " (`apk add so:" + name + "`)";
}

// Whose copy was loaded decides what helps; its path tells.
void explain_older_libstdcxx(Explanation& explanation) {
  const auto& loaded = explanation.symptom.needs;
  auto in = [&](std::string_view folder) { return loaded.find(folder) != loaded.npos; };
  const char* newer =
      "use a newer libstdc++.so.6: in a conda environment, conda install -c conda-forge "
      "libstdcxx-ng; otherwise the system's package of a newer gcc";
  const char* first =
      "if the system's own is newer than the one in the message, an environment or "
      "LD_LIBRARY_PATH put the older one first";
  explanation.say("libstdc++ comes with gcc, and each gcc adds versions to it");
  const bool system = loaded.starts_with("/lib") || loaded.starts_with("/usr/lib");
  const bool conda = in("conda") || in("/envs/") || in("miniforge") || in("mamba");
  if (conda && !in("/envs/") && explanation.symptom.library.contains("/envs/")) {
    explanation.say(
        "the copy that was loaded is conda's base copy, but the library is in another environment, "
        "whose own copy is usually newer");
    explanation.advise(
        "in that environment, activated: LD_LIBRARY_PATH=$CONDA_PREFIX/lib python ... (conda "
        "install -c conda-forge libstdcxx-ng first, if its lib has no libstdc++.so.6)");
    explanation.advise(
        "or update the copy of base: conda install -n base -c conda-forge libstdcxx-ng");
    explanation.advise(
        "`which python` must name the environment's: base's Python, with PYTHONPATH or a "
        "notebook's kernel that leads to the environment, loads base's libraries");
  } else if (system) {
    explanation.say("the copy that was loaded is the system's");
    explanation.advise(
        "in a conda environment: conda install -c conda-forge libstdcxx-ng, and "
        "LD_LIBRARY_PATH=$CONDA_PREFIX/lib if the system's is still taken; otherwise the system's "
        "package of a newer gcc, or a newer system");
  } else if (loaded.starts_with('/') && !conda) {
    explanation.say(
        "the copy that was loaded is neither the system's nor conda's: LD_LIBRARY_PATH (a compiler "
        "module) put its folder first, or the program that runs Python (Julia, MATLAB, Blender) "
        "brought it");
    explanation.advise(
        "unset LD_LIBRARY_PATH, or unload that module (module list), and try again; or load the "
        "module of a newer gcc");
    explanation.advise(
        "conda: LD_LIBRARY_PATH=$CONDA_PREFIX/lib, whose copy is newer as a rule; in another "
        "program: LD_PRELOAD=PATH/libstdc++.so.6 of the newer one, or a newer program");
  } else {
    explanation.advise(newer);
    explanation.advise(first);
  }
}

}  // namespace

void ask_library(const Asked& asked, Explanation& explanation) {
  explain_place(explanation);
  const auto* machine = asked.machine;
  if (const auto stem = explanation.symptom.part("stem"); !stem.empty())
    explanation.symptom.needs = "lib" + stem + ".so." + explanation.symptom.part("release");
  const auto& needs = explanation.symptom.needs;
  if (needs.empty() && explanation.symptom.kind == "nvrtc-builtins") return;  // it names none
  const auto name = base_name(needs);
  const bool on_musl =
      explanation.symptom.message.find("Error loading shared library") != std::string::npos;
  if (std::ranges::none_of(name, [](unsigned char c) { return std::isalpha(c) || c >= 0x80; })) {
    explanation.say(
        "that is no name of a library: the file that asks for it is damaged, by a download or an "
        "installation that was cut off, or by patchelf or strip");
    explanation.advise(
        "install the package again, or another version of it: pip install --force-reinstall "
        "--no-cache-dir NAME");
  } else if (is_driver_library(name) || is_driver_library(name + ".1")) {
    explanation.owner = "the NVIDIA driver";
    explanation.say("it is part of the NVIDIA driver; no package has it");
    if (machine && machine->driver.empty()) explanation.say("there is no driver on this machine");
    explanation.advise(
        "run on a machine with a GPU and its driver; in a container, start it with --gpus all");
    explanation.advise(
        "in WSL: LD_LIBRARY_PATH=/usr/lib/wsl/lib, with the driver installed in Windows alone");
  } else if (is_torch_library(name)) {
    explain_torch_library(name, machine, explanation);
  } else if (is_cuda_library(name)) {
    explain_cuda_library(name, machine, explanation);
  } else if (name.starts_with("libpython")) {
    explanation.owner = "Python";
    explanation.say(
        "the module is linked to a shared Python library; not every Python has one, and each has "
        "its own version");
    explanation.advise("install a build of the package that was made for this Python");
    explanation.advise(
        "or make " + name +
        " found: with conda, LD_LIBRARY_PATH=$CONDA_PREFIX/lib; of the system, apt install " +
        name.substr(0, name.find(".so")) +
        "; a Python that is built here needs --enable-shared to have one");
    explanation.advise("whoever builds it: do not link a module to libpython");
  } else if (is_musl(name) || (on_musl && is_libc(name))) {
    explain_other_libc(is_musl(name), explanation);
  } else if (needs.starts_with('/')) {
    explanation.say(
        "it was asked for by its path, and there is no file at that path: it was not built, was "
        "not installed, or was deleted");
    explanation.advise(
        "install the package again, or build it: pip install --force-reinstall --no-cache-dir "
        "NAME");
  } else if (const auto small = lower(name); small.ends_with(".dll") || small.ends_with(".dylib")) {
    const bool on_windows = small.ends_with(".dll");
    explanation.say(on_windows ? "it is a file of Windows' kind, or one that it needs is missing"
                               : "it is a file of macOS' kind");
    explanation.advise(
        "install the package again: pip install --force-reinstall --no-cache-dir NAME; its wheel "
        "may bring " +
        name);
    explanation.advise(on_windows
                           ? "or install what has it, and add its folder: PATH, and for Python 3.8 "
                             "and newer os.add_dll_directory; the Visual C++ Redistributable for "
                             "msvcp140.dll and vcruntime140.dll"
                           : "or install what has it: brew search, brew install");
  } else if (is_platform_library(name) || on_musl) {
    explanation.say(
        is_platform_library(name)
            ? "it is a library of the system that wheels may count on; minimal images leave it out"
            : "the message is musl's: the system is Alpine Linux, or one like it");
    ask_provider(asked, explanation);
    if (on_musl && !explanation.owner.empty())
      explanation.say("it belongs to " + explanation.symptom.part("of"));
    explanation.owner = "the system";
    const auto apt = explanation.symptom.part("apt");
    explanation.advise(
        "install the system's package that has " + name +
        (on_musl ? on_alpine(name)
         : apt.empty()
             ? " (`apt-file search " + name + "`, `dnf provides '*/" + name + "'`)"
             : ": apt install " + apt + "; `dnf provides '*/" + name + "'` names Fedora's"));
  } else if (explanation.symptom.kind == SymptomKind::torch_needs) {
    explanation.say(
        "it is neither CUDA's nor one that every Linux has: torch's wheel should bring it");
  } else if (ask_provider(asked, explanation); !explanation.owner.empty()) {
    explain_provided(explanation);
  } else if (is_programs_message(explanation)) {
    explanation.say(
        "it is the program's own library, or one of a package that is not installed; the loader "
        "does not look into the program's folder or the current one by itself");
    explanation.advise("`find / -name '" + name +
                       "*' 2>/dev/null` tells whether it is there: put its folder into "
                       "LD_LIBRARY_PATH (export it), or after `make install` run sudo ldconfig");
    explanation.advise("it is not there: install the package that has it (`apt-file search " +
                       name + "`, `dnf provides '*/" + name +
                       "'`), or take all files of the release");
    explanation.advise(
        "whoever builds it: link with -Wl,-rpath,'$ORIGIN/../lib' (CMAKE_INSTALL_RPATH)");
  } else {
    explanation.say(
        "it is neither torch's, nor CUDA's, nor one that every Linux has: a wheel should bring it");
    explanation.advise("install the package again: its wheel may bring " + name +
                       "; a package that was built here needs it installed");
    explanation.advise("or install the system's package that has it (`apt-file search " + name +
                       "`), or put its folder into LD_LIBRARY_PATH");
  }
}

void ask_version(const Asked& asked, Explanation& explanation) {
  explain_place(explanation);
  const auto* machine = asked.machine;
  auto& symptom = explanation.symptom;
  for (const auto* kind : {"GLIBC", "GLIBCXX", "CXXABI"}) {  // "GLIBC_2.32 not found" alone
    if (const auto number = symptom.part(kind); !number.empty())
      symptom.version = std::string(kind) + "_" + number;
  }
  const auto line = symptom.version.rfind('_');
  const auto kind = symptom.version.substr(0, line);
  symptom.set("loaded", symptom.needs.empty() ? "" : ", " + symptom.needs + ",");
  if (symptom.needs.empty())
    symptom.needs = kind == "GLIBC"                         ? "libc.so.6"
                    : kind == "GLIBCXX" || kind == "CXXABI" ? "libstdc++.so.6"
                                                            : "a library";
  const auto number = line == symptom.version.npos ? "" : symptom.version.substr(line + 1);
  explanation.owner = base_name(symptom.needs);
  if (kind == "GLIBC") {
    explanation.say("it runs with glibc " + number +
                    " and newer ones, whatever the tag of its wheel says");
    if (machine && machine->libc == "glibc")
      explanation.say(
          "glibc here is " + machine->libc_version +
          (older(machine->libc_version, number) ? "" : ": the message is of another machine"));
    explanation.advise(
        "take a build for an older system: one whose tag has manylinux_2_N with N at most that of "
        "the glibc there");
    explanation.advise(
        "or build the package on that system; a C library comes with its system alone");
    return;
  }
  if (machine && symptom.needs.starts_with('/')) {
    if (const auto* library = asked.disk.open(symptom.needs)) {
      if (const auto newest = newest_version(*library, kind); !newest.empty())
        explanation.say(symptom.needs + " here goes up to " + kind + "_" + newest);
    }
  }
  if (kind == "GLIBCXX" || kind == "CXXABI") {
    explain_older_libstdcxx(explanation);
    return;
  }
  if (symptom.version == explanation.owner) {
    explanation.say(
        "the file under the name " + explanation.owner +
        " is another library's: often a link that leads to a newer or an older release");
    explanation.advise(
        "remove the link, and take a build of the package for this system: one that brings or "
        "needs the release that is here");
    return;
  }
  explanation.advise("install a " + explanation.owner + " that has " + symptom.version +
                     ", or a build of the package for the one that is here");
}

}  // namespace wheelscope
