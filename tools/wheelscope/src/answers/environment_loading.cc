// Finds files of a distribution that are missing, cut off, or for another Python or processor, and
// simulates opening its libraries with what they need: nothing is loaded.
#include "answers/environment_judge.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "answers/owners.h"
#include "facts/facts.h"
#include "machine/imports.h"
#include "source/source.h"
#include "source/system.h"
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

// Python does not read a source that it has compiled before.
bool has_bytecode(const std::string& source) {
  return std::ranges::any_of(entries_of(folder_of(source) + "/__pycache__"), [&](const auto& file) {
    return file.starts_with(stem_of(source) + ".");
  });
}

}  // namespace

void EnvironmentJudge::lose(const std::string& path, const std::string& kind, Loads loads,
                            const std::string& what, DistributionVerdict& verdict) {
  seen_.lost.insert(path);
  // Python imports a folder of the module's name in its place, as one without code.
  std::error_code error;
  if (std::filesystem::is_directory(path.substr(0, path.find('.', path.rfind('/'))), error))
    loads = Loads::depends;
  verdict.broken.push_back(
      {.path = path,
       .loads = loads,
       .trouble = Trouble::file,
       .explanation = {.symptom = {.kind = kind, .message = path + ": " + what, .library = path},
                       .what = what,
                       .fixes = {reinstallation(verdict.distribution)}}});
}

void EnvironmentJudge::find_lost_files(DistributionVerdict& verdict) {
  for (const auto& [state, path] : verdict.files) {
    const auto name = base_name(path);
    const bool code = name.ends_with(".py") || name.ends_with(".so");
    if (!code || (name.ends_with(".so") && !is_module_for(*machine_.python, name))) continue;
    if (state == FileState::missing)
      lose(path, SymptomKind::damaged_file, name == "__init__.py" ? Loads::depends : Loads::no,
           "the file is missing, though it was installed", verdict);
    if (state == FileState::unreadable) {
      const bool is_cached = name.ends_with(".py") && has_bytecode(path);
      lose(path, SymptomKind::damaged_file, is_cached ? Loads::depends : Loads::no,
           "permission denied", verdict);
      verdict.broken.back().explanation.fixes = {"as its owner: chmod a+r " + path};
    }
    const auto* library = state == FileState::shortened ? disk_.open(path) : nullptr;
    if (library && !library->cut_off) continue;  // what is gone is not loaded: symbols, sections
    if (state == FileState::shortened)
      lose(path, SymptomKind::damaged_file, name.ends_with(".so") ? Loads::no : Loads::depends,
           "the file has lost bytes since it was installed", verdict);
  }
}

bool EnvironmentJudge::is_cut_off(const std::string& path) const {
  if (!path.ends_with(".so") || !is_module_for(*machine_.python, path)) return false;
  const auto source = Source::map(path);
  return source && (source->bytes().size() == 0 || looks_like_elf(source->bytes()));
}

bool EnvironmentJudge::is_for_others(const LibraryFacts& library,
                                     const std::vector<std::string>& files,
                                     DistributionVerdict& verdict) {
  if (!library.python_module || seen_.lost.contains(library.path)) return false;
  const auto& python = *machine_.python;
  const bool other_machine =
      library.machine != machine_.architecture && !machine_.architecture.empty();
  if (is_module_for(python, library.path) && !other_machine) return false;
  const auto stem = library.path.substr(0, library.path.find('.', library.path.rfind('/')));
  const bool has_own = std::ranges::any_of(files, [&](const std::string& path) {
    const auto* other = disk_.open(path);
    return path.starts_with(stem + ".") && other && other->machine == machine_.architecture &&
           is_module_for(python, path);
  });
  if (has_own) return true;
  const bool other_python = !is_module_for(python, library.path);
  verdict.files.push_back(
      {other_python ? FileState::other_python : FileState::other_machine, library.path});
  lose(library.path, other_python ? SymptomKind::python_abi : SymptomKind::other_machine, Loads::no,
       other_python ? "the module is for another Python; this is " + python.version
                    : "the module is for " + library.machine + "; this is " + machine_.architecture,
       verdict);
  return true;
}

bool EnvironmentJudge::is_opened(const Distribution& distribution,
                                 const LibraryFacts& library) const {
  if (library.python_module) return is_module_for(*machine_.python, library.path);
  return distribution.name != "torch" && needs_torch(library);
}

bool EnvironmentJudge::may_be_opened(const Distribution& distribution, const LibraryFacts& library,
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

PythonProcess& EnvironmentJudge::process_for(const LibraryFacts& library) {
  auto& process = needs_torch(library) ? with_torch_ : plain_;
  if (!process) process = std::make_unique<PythonProcess>(machine_, disk_, needs_torch(library));
  return *process;
}

Search EnvironmentJudge::search(const Loader& loader, const std::string& name, const Loaded& by) {
  Search search{.library = by.path};
  search.found = loader.search(name, &by, &search.steps);
  if (const auto* there = loader.already_loaded(name); there && there->path != search.found) {
    search.already_loaded = true;
    search.found = there->path;
  }
  return search;
}

std::optional<BrokenLibrary> EnvironmentJudge::clash_of(const LibraryFacts& library) const {
  const auto numpy = installed_.find("numpy");
  if (!library.numpy || numpy == installed_.end()) return std::nullopt;
  const auto why = why_not_numpy(*library.numpy, numpy->second);
  if (why == Why::none || why == Why::numpy_absent) return std::nullopt;
  const bool too_new = why == Why::numpy_one;
  const auto wanted = too_new                   ? "numpy<2"
                      : why == Why::numpy_older ? "numpy>=" + library.numpy->min
                                                : "numpy>=2";
  BrokenLibrary broken{.path = library.path, .trouble = Trouble::numpy};
  // A library that is not a module imports the API when something calls it, and may go on without.
  if (!library.python_module) broken.loads = Loads::depends;
  auto& explanation = broken.explanation;
  explanation.symptom = {
      .kind = SymptomKind::numpy_abi,
      .message = too_new && library.numpy->checks_sizes
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

std::optional<BrokenLibrary> EnvironmentJudge::clash_behind(const std::string& path,
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

bool EnvironmentJudge::has_clashing_library() {
  if (!has_clashing_library_)
    has_clashing_library_ = std::ranges::any_of(found_, [&](const Found& found) {
      return std::ranges::any_of(found.files, [&](const std::string& path) {
        const auto* library = disk_.open(path);
        return library && !library->python_module && clash_of(*library);
      });
    });
  return *has_clashing_library_;
}

std::optional<BrokenLibrary> EnvironmentJudge::open(const std::string& path,
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

std::optional<Symptom> EnvironmentJudge::first_problem(const Loader& loader,
                                                       const Opening& opening) {
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
