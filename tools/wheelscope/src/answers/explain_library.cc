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
  const bool cuda = name.contains("cuda");
  if (name.contains("_hip")) return tell("torch-hip", explanation);
  if (name == "libtorch_cuda_cu.so" || name == "libtorch_cuda_cpp.so")
    return tell("torch-cuda-in-two", explanation);
  if (cuda) tell("torch-cuda", explanation, {{"name", name}});
  if (machine && machine->torch) {
    const auto& torch = *machine->torch;
    tell("torch-is-here", explanation, {{"torch", torch.version}, {"cuda", torch.cuda}});
    if (cuda && torch.cuda.empty()) return tell("torch-without-cuda", explanation);
  } else if (cuda) {
    tell("torch-cuda-unknown", explanation);
  }
  tell("torch-library", explanation, {{"name", name}});
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
  const auto all = joined(distributions, " or ");
  explanation.owner = distributions.empty() ? release : all;
  tell("cuda-library", explanation,
       {{"release", release},
        {"distributions", all},
        {"curand", name == "libcurand.so.10" ? name : ""}});
  if (name.ends_with(".so")) tell("cuda-unnumbered", explanation, {{"name", name}});
  bool here = false;
  for (const auto& library : machine ? machine->cuda_libraries : std::vector<CudaLibraryFacts>()) {
    here |= library.name == name;
    if (library.name == name)
      tell("cuda-is-here", explanation, {{"path", library.path}});
    else if (library_stem(library.name) == library_stem(name))
      tell("cuda-other-is-here", explanation,
           {{"other", library.name},
            {"distribution", library.distribution + " " + library.version}});
  }
  if (!cuda.empty())
    tell("torch-is-here", explanation, {{"torch", machine->torch->version}, {"cuda", cuda}});
  if (here) return;
  if (comes_with_cuda(name, cuda))
    return tell("cuda-of-torch-lost", explanation, {{"distributions", explanation.owner}});
  const bool is_range = all.contains('<');
  tell("cuda-of-another", explanation,
       {{"cuda", cuda},
        {"install", !all.empty()      ? "pip install " + (is_range ? "'" + all + "'" : all)
                    : release.empty() ? ""
                                      : "install " + release}});
}

bool is_libc(std::string_view name) {
  for (const auto* own : {"ld-linux", "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2"}) {
    if (name.starts_with(own)) return true;
  }
  return false;
}

// What the place in a message adds: NixOS has no folders that others search.
void explain_place(Explanation& explanation) {
  if (explanation.symptom.message.contains("/nix/store/")) tell("nix", explanation);
}

// True if Python code opened the library, as the lines of ctypes and cffi show.
bool is_opened_by_python(const Symptom& symptom) {
  for (const auto* call : {"_dlopen(", "cdll(", "loadlibrary(", "ffi.dlopen"}) {
    if (symptom.text && symptom.text->contains(call)) return true;
  }
  return false;
}

// The loader says so of programs; Python's modules have other words.
bool is_programs_message(const Explanation& explanation) {
  return explanation.symptom.message.find("error while loading shared libraries") !=
         std::string::npos;
}

// Whose copy was loaded decides what helps; its path tells.
void explain_older_libstdcxx(Explanation& explanation) {
  const auto& loaded = explanation.symptom.needs;
  tell("libstdcxx", explanation);
  const bool conda = loaded.contains("conda") || loaded.contains("/envs/") ||
                     loaded.contains("miniforge") || loaded.contains("mamba");
  if (conda && !loaded.contains("/envs/") && explanation.symptom.library.contains("/envs/"))
    tell("libstdcxx-of-base", explanation);
  else if (loaded.starts_with("/lib") || loaded.starts_with("/usr/lib"))
    tell("libstdcxx-of-the-system", explanation);
  else if (loaded.starts_with('/') && !conda)
    tell("libstdcxx-of-a-module", explanation);
  else
    tell("libstdcxx-of-anyone", explanation);
}

}  // namespace

void ask_library(const Asked& asked, Explanation& explanation) {
  explain_place(explanation);
  const auto* machine = asked.machine;
  auto& symptom = explanation.symptom;
  if (const auto stem = symptom.part("stem"); !stem.empty())
    symptom.needs = "lib" + stem + ".so." + symptom.part("release");
  const auto& needs = symptom.needs;
  if (needs.empty() && symptom.kind == "nvrtc-builtins") return;  // it names none
  const auto name = base_name(needs), small = lower(name);
  const bool on_musl = symptom.message.contains("Error loading shared library");
  auto tell_of = [&](const char* key) { tell(key, explanation, {{"name", name}}); };
  if (std::ranges::none_of(name, [](unsigned char c) { return std::isalpha(c) || c >= 0x80; })) {
    tell("nameless-library", explanation);
  } else if (is_driver_library(name) || is_driver_library(name + ".1")) {
    const bool absent = machine && machine->driver.empty();
    tell("driver-library", explanation, {{"absent", absent ? "absent" : ""}});
  } else if (is_torch_library(name)) {
    explain_torch_library(name, machine, explanation);
  } else if (is_cuda_library(name)) {
    explain_cuda_library(name, machine, explanation);
  } else if (name.starts_with("libpython")) {
    auto package = name.substr(0, name.find(".so"));
    if (package.ends_with('m')) package.pop_back();  // Debian's is libpython3.7
    tell("python-library", explanation,
         {{"name", name},
          {"package", package},
          {"program", is_programs_message(explanation) ? "program" : ""}});
  } else if (is_musl(name)) {
    tell("musl-library", explanation);
  } else if (on_musl && is_libc(name)) {
    tell("glibc-on-musl", explanation);
  } else if (needs.starts_with('/')) {
    const bool package = needs.contains("-packages/");
    tell("library-by-its-path", explanation, {{"package", package ? "package" : ""}});
  } else if (needs.contains('/') && !needs.contains('$')) {
    tell("library-by-relative-path", explanation);
  } else if (small.ends_with(".dll")) {
    const bool linux = symptom.message.contains("shared object file");
    tell("windows-library", explanation, {{"name", name}, {"linux", linux ? "linux" : ""}});
  } else if (small.ends_with(".dylib")) {
    tell_of("macos-library");
  } else if (is_platform_library(name) || on_musl) {
    tell(is_platform_library(name) ? "platform-library" : "library-on-musl", explanation);
    ask_provider(asked, explanation);
    const bool numbered = !name.ends_with(".so");
    tell("library-of-the-system", explanation,
         {{"name", name},
          {"of", on_musl ? symptom.part("of") : ""},
          {"link", on_musl && !numbered ? name : ""},
          {"numbered", on_musl && numbered ? name : ""},
          {"glibc", on_musl ? "" : "glibc"},
          {"apt", symptom.part("apt")}});
  } else if (symptom.kind == SymptomKind::torch_needs) {
    tell("library-of-torchs-wheel", explanation);
  } else if (ask_provider(asked, explanation); !explanation.owner.empty()) {
    tell("provided-library", explanation,
         {{"name", name},
          {"of", symptom.part("of")},
          {"apt", symptom.part("apt")},
          {"pip", symptom.part("pip")},
          {"program", is_programs_message(explanation) ? "program" : ""}});
  } else if (is_programs_message(explanation)) {
    tell_of("library-of-a-program");
  } else if (name.ends_with(".so") && !name.starts_with("lib")) {
    tell_of("library-of-a-project");
  } else {
    const bool opened = is_opened_by_python(symptom);
    tell("library-of-a-wheel", explanation, {{"name", name}, {"opened", opened ? "opened" : ""}});
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
    // How the file came there decides what helps.
    auto names = [&](std::string_view folder) { return symptom.message.contains(folder); };
    const bool onefile = names("/_MEI") || names("/onefile_") || names("/.mount_") ||
                         names("Error loading Python lib");
    const bool package =
        !onefile && (names("site-packages") || names("dist-packages") || names(".cpython-"));
    const auto here = machine && machine->libc == "glibc" ? machine->libc_version : "";
    auto yes_if = [](bool is_so) { return is_so ? "yes" : ""; };
    return tell("glibc-version", explanation,
                {{"number", number},
                 {"here", here},
                 {"other", older(here, number) ? "" : here},
                 {"onefile", yes_if(onefile)},
                 {"package", yes_if(package)},
                 {"wheel", yes_if(package || (!onefile && symptom.library.empty()))},
                 {"program", yes_if(!onefile && !package)}});
  }
  if (machine && symptom.needs.starts_with('/')) {
    if (const auto* library = asked.disk.open(symptom.needs)) {
      if (const auto newest = newest_version(*library, kind); !newest.empty())
        tell("version-here", explanation,
             {{"path", symptom.needs}, {"version_here", kind + "_" + newest}});
    }
  }
  if (kind == "GLIBCXX" || kind == "CXXABI") return explain_older_libstdcxx(explanation);
  const auto& loaded = symptom.needs;
  const bool outside = symptom.library.contains("-packages/") && loaded.starts_with('/') &&
                       !loaded.contains("-packages/") && !loaded.starts_with("/usr/lib") &&
                       !loaded.starts_with("/lib") && !loaded.contains("/envs/");
  tell(symptom.version == explanation.owner ? "version-of-another-library" : "version-of-a-library",
       explanation,
       {{"owner", explanation.owner},
        {"wanted", symptom.version},
        {"outside", outside ? loaded : ""}});
}

}  // namespace wheelscope
