// Simulates opening a library, with what it needs: nothing is loaded.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "answers/environment_judge.h"
#include "answers/owners.h"
#include "facts/facts.h"
#include "machine/imports.h"
#include "source/files.h"
#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {
namespace {

bool needs_torch(const LibraryFacts& library) {
  return std::ranges::any_of(library.needed, is_torch_library);
}

// Symptoms in the loader's own words.
Symptom symptom_of(const MissingLibrary& missing) {
  return {.kind = SymptomKind::missing_library,
          .message = missing.name + ": cannot open shared object file: No such file or directory",
          .library = missing.needed_by ? missing.needed_by->path : "",
          .needs = missing.name};
}

Symptom symptom_of(const MissingVersion& missing, const Loaded* provider) {
  const auto path = provider ? provider->path : missing.library;
  return {.kind = SymptomKind::missing_version,
          .message = path + ": version `" + missing.version + "' not found (required by " +
                     missing.needed_by->path + ")",
          .library = missing.needed_by->path,
          .needs = path,
          .version = missing.version};
}

Symptom symptom_of(const Loaded& library, const SymbolFact& symbol) {
  const auto version = symbol.version.empty() ? "" : ", version " + symbol.version;
  return {.kind = SymptomKind::undefined_symbol,
          .message = library.path + ": undefined symbol: " + symbol.name + version,
          .library = library.path,
          .symbol = symbol.name,
          .version = symbol.version};
}

LoaderWorld world_of(const MachineFacts& machine, Disk& disk) {
  auto world = disk.world(machine.architecture);
  if (const char* path = std::getenv("LD_LIBRARY_PATH"); path && *path)
    world.library_path = split(path, ':');
  return world;
}

std::string module_of(const std::string& folder, const std::string& name) {
  for (const auto& file : entries_of(folder)) {
    if (file.starts_with(name + ".") && file.ends_with(".so")) return folder + "/" + file;
  }
  return {};
}

}  // namespace

bool PackageJudge::is_opened(const Distribution& distribution, const LibraryFacts& library) const {
  if (library.python_module) return is_module_for(*machine_.python, library.path);
  return distribution.name != "torch" && needs_torch(library);
}

bool PackageJudge::may_be_opened(const Distribution& distribution, const LibraryFacts& library,
                                 const std::vector<std::string>& files) {
  if (library.python_module || distribution.name == "torch" ||
      chooses_kernels_itself(distribution) || library.machine != machine_.architecture)
    return false;
  const auto name = library.soname.empty() ? base_name(library.path) : library.soname;
  return std::ranges::none_of(files, [&](const std::string& path) {
    const auto* other = disk_.open(path);
    return other && contains(other->needed, name);
  });
}

PythonProcess& PackageJudge::process_for(const LibraryFacts& library) {
  auto& process = needs_torch(library) ? with_torch_ : plain_;
  if (!process) process = std::make_unique<PythonProcess>(machine_, disk_, needs_torch(library));
  return *process;
}

Search PackageJudge::search(const Loader& loader, const std::string& name, const Loaded& by) {
  Search search{.library = by.path};
  search.found = loader.search(name, &by, &search.steps);
  if (const auto* there = loader.already_loaded(name); there && there->path != search.found) {
    search.already_loaded = true;
    search.found = there->path;
  }
  return search;
}

std::optional<BrokenLibrary> PackageJudge::clash_of(const LibraryFacts& library) const {
  const auto numpy = installed_.find("numpy");
  if (!library.numpy || numpy == installed_.end()) return std::nullopt;
  const auto clash = clash_with_numpy(*library.numpy, numpy->second);
  if (clash == NumpyClash::none) return std::nullopt;
  const bool too_new = clash == NumpyClash::old_headers || clash == NumpyClash::old_types;
  const auto wanted = too_new                              ? "numpy<2"
                      : clash == NumpyClash::new_functions ? "numpy>=" + library.numpy->min
                                                           : "numpy>=2";
  BrokenLibrary broken{.path = library.path, .trouble = Trouble::numpy};
  // A library that is not a module imports the API when something calls it, and may go on without.
  if (!library.python_module) broken.loads = Loads::depends;
  auto& explanation = broken.explanation;
  explanation.symptom = {
      .kind = SymptomKind::numpy_abi,
      .message = clash == NumpyClash::old_types
                     ? "numpy.dtype size changed, may indicate binary incompatibility"
                     : "numpy.core.multiarray failed to import",
      .library = library.path,
      .version = numpy->second};
  explanation.what = too_new ? "it was built for NumPy 1; NumPy " + numpy->second + " is here"
                             : "it needs " + wanted + "; NumPy " + numpy->second + " is here";
  explanation.because = {explanation.what};
  explanation.fixes = {"pip install '" + wanted + "', or a version that is built for this NumPy"};
  return broken;
}

std::optional<BrokenLibrary> PackageJudge::clash_behind(const std::string& path,
                                                        const LibraryFacts& library) {
  if (!has_clashing_library()) return std::nullopt;
  for (const auto* one : process_for(library).open(path).scope) {
    if (one->facts->python_module) continue;
    auto broken = clash_of(*one->facts);
    if (!broken) continue;
    broken->path = path;
    return broken;
  }
  return std::nullopt;
}

bool PackageJudge::has_clashing_library() {
  if (!has_clashing_library_)
    has_clashing_library_ = std::ranges::any_of(found_, [&](const Found& found) {
      return std::ranges::any_of(found.files, [&](const std::string& path) {
        const auto* library = disk_.open(path);
        return library && !library->python_module && clash_of(*library);
      });
    });
  return *has_clashing_library_;
}

std::optional<BrokenLibrary> PackageJudge::open(const std::string& path,
                                                const LibraryFacts& library) {
  auto& process = process_for(library);
  auto opening = process.open(path);
  auto symptom = first_problem(process.loader(), opening);
  if (!symptom) return std::nullopt;
  BrokenLibrary broken{.path = path, .explanation = explain(*symptom, &machine_, disk_)};
  // Python code can load libraries that are here; then the rest of the way counts.
  std::vector<std::string> before;
  for (std::size_t tries = 0; tries < 20 && symptom; ++tries) {
    const auto place = places_.find(symptom->needs);
    if (symptom->kind != SymptomKind::missing_library || place == places_.end()) break;
    before.push_back(place->second);
    opening = process.open(path, before);
    symptom = first_problem(process.loader(), opening);
  }
  if (symptom) {
    broken.explanation = explain(*symptom, &machine_, disk_);
  } else {
    broken.loads = Loads::depends;
    broken.trouble = Trouble::elsewhere;
    broken.explanation.because.insert(broken.explanation.because.begin(),
                                      "it is here, but no search leads there: " + joined(before));
  }
  return broken;
}

std::optional<Symptom> PackageJudge::first_problem(const Loader& loader, const Opening& opening) {
  for (const auto& missing : opening.missing_libraries) {
    if (!trusts_driver_ || !is_driver_library(missing.name)) return symptom_of(missing);
  }
  if (!opening.missing_versions.empty()) {
    const auto& missing = opening.missing_versions.front();
    return symptom_of(missing, loader.already_loaded(missing.library));
  }
  for (const auto* library : opening.scope) {
    if (bound_.contains(library->facts)) continue;
    for (const auto& symbol : library->facts->symbols) {
      if (symbol.defined || symbol.weak || loader.bind(symbol, opening).library ||
          (trusts_driver_ && is_driver_symbol(symbol.name)))
        continue;
      return symptom_of(*library, symbol);
    }
    bound_.insert(library->facts);
  }
  return std::nullopt;
}

// Loads what Python's program and `import torch` load. torch opens libtorch_global_deps.so for all
// to see, and where a library of CUDA is not found that way, those of the nvidia distributions one
// by one; then its module _C.
PythonProcess::PythonProcess(const MachineFacts& machine, Disk& disk, bool torch)
    : loader_(world_of(machine, disk)) {
  std::error_code error;
  loader_.start(std::filesystem::canonical(machine.python->executable, error).string());
  if (torch && machine.torch) import_torch(machine);
  started_ = loader_.count();
}

void PythonProcess::import_torch(const MachineFacts& machine) {
  const auto before = loader_.count();
  const auto dependencies = machine.torch->path + "/lib/libtorch_global_deps.so";
  if (!loader_.open(dependencies, true).missing_libraries.empty()) {
    loader_.unload_after(before);
    for (const auto& library : machine.cuda_libraries) loader_.open(library.path);
    loader_.open(dependencies, true);
  }
  if (const auto module = module_of(machine.torch->path, "_C"); !module.empty())
    loader_.open(module);
}

Opening PythonProcess::open(const std::string& path, const std::vector<std::string>& before) {
  loader_.unload_after(started_);
  for (const auto& library : before) loader_.open(library);
  return loader_.open(path);
}

}  // namespace wheelscope
