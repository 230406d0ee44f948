// Simulates opening every module of an environment: nothing is loaded.
#include "answers/environment.h"

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>

#include "answers/environment_imports.h"
#include "answers/process.h"
#include "answers/providers.h"
#include "answers/suppliers.h"
#include "answers/wheel_imports.h"
#include "facts/symbol_names.h"
#include "machine/imports.h"
#include "packaging/marker.h"
#include "packaging/metadata.h"
#include "packaging/record.h"
#include "packaging/requirement.h"
#include "packaging/specifier.h"
#include "packaging/tag.h"
#include "source/files.h"
#include "text/text.h"
#include "verdicts/cuda.h"
#include "verdicts/numpy_abi.h"

namespace wheelscope {
namespace {

bool needs_torch(const LibraryFacts& library) {
  return std::ranges::any_of(library.needed, is_torch_library);
}

// NVIDIA's own libraries choose among kernels that they keep in ways of their own: the targets in
// their fat binaries do not tell which GPUs they serve.
bool chooses_kernels_itself(const Distribution& distribution) {
  return distribution.name.starts_with("nvidia-");
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

class PackageJudge {
 public:
  PackageJudge(const MachineFacts& machine, Disk& disk, DriverFiles driver)
      : machine_(machine),
        disk_(disk),
        trusts_driver_(driver == DriverFiles::elsewhere && !machine.driver.empty()) {
    std::vector<FileToRead> all;
    auto distributions = list_distributions(machine.python->site_packages);
    auto odd = compare_with_records(distributions, machine.python->prefix);
    for (std::size_t i = 0; i < distributions.size(); ++i) {
      auto& distribution = distributions[i];
      auto files = shared_libraries_of(distribution);
      const bool device_code = !machine.gpus.empty() && !chooses_kernels_itself(distribution);
      for (const auto& path : files) all.push_back({path, device_code});
      installed_[distribution.name] = distribution.version;
      if (!files.empty() || !odd[i].empty())
        found_.push_back({std::move(distribution), std::move(files), std::move(odd[i])});
    }
    disk_.read_all(all);
    for (const auto& file : all) {
      places_.try_emplace(base_name(file.path), file.path);
      seen_.libraries.push_back(file.path);
    }
  }

  std::vector<DistributionVerdict> run() {
    std::vector<DistributionVerdict> verdicts;
    for (auto& [distribution, files, odd] : found_) {
      auto verdict = judge(distribution, files, std::move(odd));
      if (verdict.libraries > 0 || !verdict.files.empty() || !verdict.broken.empty())
        verdicts.push_back(std::move(verdict));
    }
    wheelscope::judge_imports(verdicts, seen_, *machine_.python, disk_);
    for (auto& verdict : verdicts) find_refusal(verdict);
    return verdicts;
  }

  std::vector<Search> searches_for(const std::string& name) {
    std::vector<Search> searches;
    std::set<std::string> asked;  // the libraries whose search was told
    for (const auto& [distribution, files, odd] : found_) {
      for (const auto& path : files) {
        const auto* library = disk_.open(path);
        if (!library || !is_opened(distribution, *library)) continue;
        auto& process = process_for(*library);
        const auto opening = process.open(path);
        for (const auto* one : opening.scope) {
          if (std::ranges::find(one->facts->needed, name) != one->facts->needed.end() &&
              asked.insert(one->path).second)
            searches.push_back(search(process.loader(), name, *one));
        }
      }
    }
    return searches;
  }

 private:
  struct Found {
    Distribution distribution;
    std::vector<std::string> files;  // shared libraries
    std::vector<OddFile> odd;
  };

  // Modules of this Python; and libraries on torch, which torch.ops.load_library opens. torch's own
  // libraries come with its module.
  bool is_opened(const Distribution& distribution, const LibraryFacts& library) const {
    if (library.python_module) return is_module_for(*machine_.python, library.path);
    return distribution.name != "torch" && needs_torch(library);
  }

  // By functions of Python, by its path: a library that nothing else of the distribution needs.
  bool may_be_opened(const Distribution& distribution, const LibraryFacts& library,
                     const std::vector<std::string>& files) {
    if (library.python_module || distribution.name == "torch" ||
        chooses_kernels_itself(distribution) || library.machine != machine_.architecture)
      return false;
    const auto name = library.soname.empty() ? base_name(library.path) : library.soname;
    return std::ranges::none_of(files, [&](const std::string& path) {
      const auto* other = disk_.open(path);
      return other && std::ranges::find(other->needed, name) != other->needed.end();
    });
  }

  PythonProcess& process_for(const LibraryFacts& library) {
    auto& process = needs_torch(library) ? with_torch_ : plain_;
    if (!process) process = std::make_unique<PythonProcess>(machine_, disk_, needs_torch(library));
    return *process;
  }

  static Search search(const Loader& loader, const std::string& name, const Loaded& by) {
    Search search{.library = by.path};
    search.found = loader.search(name, &by, &search.steps);
    if (const auto* there = loader.already_loaded(name); there && there->path != search.found) {
      search.already_loaded = true;
      search.found = there->path;
    }
    return search;
  }

  DistributionVerdict judge(const Distribution& distribution, const std::vector<std::string>& files,
                            std::vector<OddFile> odd) {
    DistributionVerdict verdict{.distribution = distribution, .files = std::move(odd)};
    find_lost_files(verdict);
    for (const auto& path : files) {
      const auto* library = disk_.open(path);
      if (!library) {
        if (is_cut_off(path) && !seen_.lost.contains(path))
          lose(path, SymptomKind::damaged_file, Loads::no, "the file is not whole", verdict);
        continue;
      }
      ++verdict.libraries;
      if (!chooses_kernels_itself(distribution)) find_unserved(*library, verdict);
      if (is_for_others(*library, files, verdict) || seen_.lost.contains(path)) continue;
      const bool opened = is_opened(distribution, *library);
      if (opened) ++verdict.opened;
      if (!opened && !may_be_opened(distribution, *library, files)) continue;
      auto broken = open(path, *library);
      if (!broken) broken = clash_of(*library);
      if (!broken && library->python_module) broken = clash_behind(path, *library);
      if (!broken) {
        if (!library->python_module) seen_.loading_families.insert(library_family(path));
        continue;
      }
      if (!opened) seen_.opened_by_path.insert(path);
      verdict.broken.push_back(std::move(*broken));
    }
    if (verdict.libraries > 0) check_requirements(verdict);
    return verdict;
  }

  void lose(const std::string& path, const std::string& kind, Loads loads, const std::string& what,
            DistributionVerdict& verdict) {
    const auto& [name, version, folder, dist_info] = verdict.distribution;
    seen_.lost.insert(path);
    verdict.broken.push_back(
        {.path = path,
         .loads = loads,
         .trouble = Trouble::file,
         .explanation = {
             .symptom = {.kind = kind, .message = path + ": " + what, .library = path},
             .what = what,
             .fixes = {"pip install --force-reinstall --no-deps " + name + "==" + version}}});
  }

  // Code that is not there any more, or not whole. Python imports a folder whose __init__.py is
  // missing, as one without code.
  void find_lost_files(DistributionVerdict& verdict) {
    for (const auto& [state, path] : verdict.files) {
      const auto name = base_name(path);
      const bool code = name.ends_with(".py") || name.ends_with(".so");
      if (!code || (name.ends_with(".so") && !is_module_for(*machine_.python, name))) continue;
      if (state == FileState::missing)
        lose(path, SymptomKind::damaged_file, name == "__init__.py" ? Loads::depends : Loads::no,
             "the file is missing, though it was installed", verdict);
      const auto* library = state == FileState::shortened ? disk_.open(path) : nullptr;
      if (library && !library->cut_off) continue;  // what is gone is not loaded: symbols, sections
      if (state == FileState::shortened && name.ends_with(".so"))
        lose(path, SymptomKind::damaged_file, Loads::no,
             "the file has lost bytes since it was installed", verdict);
    }
  }

  // A module with the start of an ELF file, or with nothing in it.
  bool is_cut_off(const std::string& path) const {
    if (!path.ends_with(".so") || !is_module_for(*machine_.python, path)) return false;
    const auto source = Source::map(path);
    return source && (source->bytes().size() == 0 || looks_like_elf(source->bytes()));
  }

  // A module for another processor or another Python, of which there is none for this one.
  bool is_for_others(const LibraryFacts& library, const std::vector<std::string>& files,
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
    lose(library.path, other_python ? SymptomKind::python_abi : SymptomKind::other_machine,
         Loads::no,
         other_python
             ? "the module is for another Python; this is " + python.version
             : "the module is for " + library.machine + "; this is " + machine_.architecture,
         verdict);
    return true;
  }

  // A library that was built for another NumPy than the one that is installed.
  std::optional<BrokenLibrary> clash_of(const LibraryFacts& library) const {
    const auto numpy = installed_.find("numpy");
    if (!library.numpy || numpy == installed_.end()) return std::nullopt;
    const auto clash = clash_with_numpy(*library.numpy, numpy->second);
    if (clash == NumpyClash::none) return std::nullopt;
    const bool too_new = clash == NumpyClash::old_headers || clash == NumpyClash::old_types;
    const auto wanted = too_new                              ? "numpy<2"
                        : clash == NumpyClash::new_functions ? "numpy>=" + library.numpy->min
                                                             : "numpy>=2";
    BrokenLibrary broken{.path = library.path, .trouble = Trouble::numpy};
    // A library that is no module imports the API when something calls it, and may go on without.
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

  // The same of a library that a module needs: it imports NumPy's API when the module asks it to.
  std::optional<BrokenLibrary> clash_behind(const std::string& path, const LibraryFacts& library) {
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

  bool has_clashing_library() {
    if (!has_clashing_library_)
      has_clashing_library_ = std::ranges::any_of(found_, [&](const Found& found) {
        return std::ranges::any_of(found.files, [&](const std::string& path) {
          const auto* library = disk_.open(path);
          return library && !library->python_module && clash_of(*library);
        });
      });
    return *has_clashing_library_;
  }

  // Packages that are to be imported by another one say so.
  void find_refusal(DistributionVerdict& verdict) const {
    const auto& folder = verdict.distribution.folder;
    WheelFiles files{.read = [&](const std::string& name) -> std::optional<std::string> {
      auto text = read_text(folder + "/" + name);
      return text ? std::optional(std::move(*text)) : std::nullopt;
    }};
    if (const auto record = read_text(verdict.distribution.dist_info + "/RECORD")) {
      for (auto& line : parse_record(*record)) files.names.push_back(std::move(line.path));
    }
    const auto refusal = refusal_in(files, *machine_.python);
    verdict.refuses = refusal.file;
    if (refusal.need != Need::never)
      verdict.loads =
          std::max(verdict.loads, refusal.need == Need::always ? Loads::no : Loads::depends);
  }

  std::optional<BrokenLibrary> open(const std::string& path, const LibraryFacts& library) {
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

  // What the loader would stop at: libraries first, then versions, then symbols.
  std::optional<Symptom> first_problem(const Loader& loader, const Opening& opening) {
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

  void check_requirements(DistributionVerdict& verdict) const {
    const auto text = read_text(verdict.distribution.dist_info + "/METADATA");
    if (!text) return;
    WheelClaims claims;
    parse_metadata(*text, claims);
    const auto& python = *machine_.python;
    const auto environment = linux_environment(python.version, python.architecture);
    for (const auto& line : claims.requires_dist) {
      const auto requirement = parse_requirement(line);
      if (holds(requirement.marker, environment) != true) continue;
      const auto found = installed_.find(canonical_name(requirement.name));
      if (found == installed_.end())
        verdict.unmet.push_back({.requirement = line});
      else if (fulfils(found->second, requirement.specifiers) == false)
        verdict.unmet.push_back({.requirement = line, .installed = found->second});
    }
    if (!claims.requires_python.empty() && fulfils(python.version, claims.requires_python) == false)
      verdict.unmet.push_back({claims.requires_python, python.version, true});
    if (!verdict.unmet.empty()) verdict.loads = std::max(verdict.loads, Loads::depends);
  }

  void find_unserved(const LibraryFacts& library, DistributionVerdict& verdict) const {
    if (library.device_code.empty()) return;
    std::set<std::string> asked;
    for (const auto& gpu : machine_.gpus) {
      if (gpu.capability.empty() || !asked.insert(gpu.capability).second) continue;
      const bool served = std::ranges::any_of(library.device_code, [&](const DeviceTarget& code) {
        if (code.relocatable) return false;  // runs when it is linked
        return code.kind == CodeKind::sass  ? sass_serves(code.target, gpu.capability)
               : code.kind == CodeKind::ptx ? ptx_serves(code.target, gpu.capability)
                                            : false;
      });
      if (!served) verdict.unserved.push_back({library.path, gpu.name, gpu.capability});
    }
  }

  const MachineFacts& machine_;
  Disk& disk_;
  bool trusts_driver_;  // to bring its libraries
  std::vector<Found> found_;
  std::map<std::string, std::string> installed_, places_;  // name -> version, library -> path
  std::unique_ptr<PythonProcess> plain_, with_torch_;
  std::set<const LibraryFacts*> bound_;       // every symbol of theirs is found
  std::optional<bool> has_clashing_library_;  // that is no module
  FilesSeen seen_;
};

}  // namespace

std::vector<DistributionVerdict> judge_environment(const MachineFacts& machine, Disk& disk,
                                                   DriverFiles driver) {
  return PackageJudge(machine, disk, driver).run();
}

std::vector<Search> searches_for(const std::string& name, const MachineFacts& machine, Disk& disk) {
  return PackageJudge(machine, disk, DriverFiles::here).searches_for(name);
}

const char* name_of(Trouble trouble) {
  static constexpr const char* names[] = {"loader", "elsewhere", "numpy", "file"};
  return names[static_cast<std::size_t>(trouble)];
}

const char* name_of(Loads loads) {
  return loads == Loads::yes ? "yes" : loads == Loads::depends ? "depends" : "no";
}

}  // namespace wheelscope
