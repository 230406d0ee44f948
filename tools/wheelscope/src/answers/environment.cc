// Opens every module of an environment in a process that exists in thought only: nothing is loaded.
#include "answers/environment.h"

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>

#include "answers/process.h"
#include "answers/providers.h"
#include "answers/suppliers.h"
#include "facts/symbol_names.h"
#include "machine/imports.h"
#include "machine/openings.h"
#include "packaging/marker.h"
#include "packaging/metadata.h"
#include "packaging/requirement.h"
#include "packaging/specifier.h"
#include "packaging/tag.h"
#include "source/files.h"
#include "text/text.h"
#include "verdicts/cuda.h"

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

std::string stem_of_file(const std::string& path) {
  const auto name = base_name(path);
  return name.substr(0, name.find('.'));
}

// Libraries beside each other that differ by numbers and by cpu or cuda: one is chosen when the
// program runs, for the torch or the FFmpeg that is there.
std::string family_of(const std::string& path) {
  auto family = path;
  for (const std::string_view variant : {"cpu", "cuda"}) {
    if (const auto at = family.rfind(variant); at != family.npos && at > family.rfind('/'))
      family.erase(at, variant.size());
  }
  const auto name = family.rfind('/') + 1;
  family.erase(std::remove_if(family.begin() + static_cast<std::ptrdiff_t>(name), family.end(),
                              [](char c) { return is_digit(c); }),
               family.end());
  return family;
}

class PackageJudge {
 public:
  PackageJudge(const MachineFacts& machine, Disk& disk, DriverFiles driver)
      : machine_(machine),
        disk_(disk),
        trusts_driver_(driver == DriverFiles::elsewhere && !machine.driver.empty()) {
    std::vector<FileToRead> all;
    for (auto& distribution : list_distributions(machine.python->site_packages)) {
      auto files = shared_libraries_of(distribution);
      const bool device_code = !machine.gpus.empty() && !chooses_kernels_itself(distribution);
      for (const auto& path : files) all.push_back({path, device_code});
      installed_[distribution.name] = distribution.version;
      if (!files.empty()) found_.emplace_back(std::move(distribution), std::move(files));
    }
    disk_.read_all(all);
    for (const auto& file : all) places_.try_emplace(base_name(file.path), file.path);
  }

  std::vector<DistributionVerdict> run() {
    std::vector<DistributionVerdict> verdicts;
    for (const auto& [distribution, files] : found_) {
      auto verdict = judge(distribution, files);
      if (verdict.libraries > 0) verdicts.push_back(std::move(verdict));
    }
    judge_imports(verdicts);
    return verdicts;
  }

  std::vector<Search> searches_for(const std::string& name) {
    std::vector<Search> searches;
    std::set<std::string> asked;  // the libraries whose search was told
    for (const auto& [distribution, files] : found_) {
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

  DistributionVerdict judge(const Distribution& distribution,
                            const std::vector<std::string>& files) {
    DistributionVerdict verdict{.distribution = distribution};
    for (const auto& path : files) {
      const auto* library = disk_.open(path);
      if (!library) continue;
      ++verdict.libraries;
      if (!chooses_kernels_itself(distribution)) find_unserved(*library, verdict);
      const bool opened = is_opened(distribution, *library);
      if (opened) ++verdict.opened;
      if (!opened && !may_be_opened(distribution, *library, files)) continue;
      auto broken = open(path, *library);
      if (!broken) {
        if (!library->python_module) loading_families_.insert(family_of(path));
        continue;
      }
      if (!opened) opened_by_path_.insert(path);
      verdict.broken.push_back(std::move(*broken));
    }
    if (verdict.libraries > 0) check_requirements(verdict);
    return verdict;
  }

  // What an import of each distribution makes of the libraries that do not load.
  void judge_imports(std::vector<DistributionVerdict>& verdicts) {
    Imports imports(*machine_.python);
    for (auto& verdict : verdicts) {
      if (verdict.broken.empty()) continue;
      const auto names = import_names(verdict.distribution);
      const auto run = imports.files_run_by(names);
      const auto openings = openings_of(verdict, names, run, imports);
      for (auto& library : verdict.broken) {
        library.optional = (opened_by_path_.contains(library.path) || !names.empty()) &&
                           !run.contains(library.path) && !must_open(openings, library.path);
        if (!library.optional) verdict.loads = std::max(verdict.loads, library.loads);
      }
      std::erase_if(verdict.broken, [&](const BrokenLibrary& library) {
        return library.optional && opened_by_path_.contains(library.path);
      });
    }
    blame_imported(verdicts, imports);
  }

  // A distribution that imports one that does not load does not load either.
  static void blame_imported(std::vector<DistributionVerdict>& verdicts, Imports& imports) {
    std::map<std::string, std::string> broken;  // file -> distribution
    for (const auto& verdict : verdicts) {
      if (verdict.loads != Loads::no) continue;
      for (const auto& file : files_of_names(verdict.distribution))
        broken.emplace(file, verdict.distribution.name);
    }
    if (broken.empty()) return;
    for (auto& verdict : verdicts) {
      if (verdict.loads == Loads::no) continue;
      const auto names = import_names(verdict.distribution);
      const auto first = std::ranges::find_if(
          broken, [&](const auto& one) { return imports.runs(names, one.first); });
      if (first == broken.end()) continue;
      verdict.loads = Loads::no;
      verdict.imports = first->second;
    }
  }

  // The files that an import of anything of the distribution runs.
  static std::vector<std::string> files_of_names(const Distribution& distribution) {
    std::vector<std::string> files;
    for (auto name : import_names(distribution)) {
      std::ranges::replace(name, '.', '/');
      files.push_back(distribution.folder + "/" + name + "/__init__.py");
    }
    return files;
  }

  bool must_open(const Openings& openings, const std::string& path) {
    if (opened_by_path_.contains(path)) return openings.must_open_by_name(stem_of_file(path));
    const bool another_loads = loading_families_.contains(family_of(path));
    return disk_.open(path)->python_module ? openings.must_open_module(stem_of_file(path))
                                           : openings.must_open(stem_of_file(path), another_loads);
  }

  // The libraries that the distribution's own files open.
  static Openings openings_of(const DistributionVerdict& verdict,
                              const std::vector<std::string>& names,
                              const std::set<std::string>& run, Imports& imports) {
    std::vector<const PythonSource*> sources;
    for (const auto& name : names) {
      const auto folder = verdict.distribution.folder + "/" + name + "/";
      for (auto file = run.lower_bound(folder); file != run.end(); ++file) {
        if (!file->starts_with(folder)) break;
        sources.push_back(&imports.source_of(*file));
      }
    }
    std::set<std::string> libraries;
    for (const auto& path : shared_libraries_of(verdict.distribution))
      libraries.insert(stem_of_file(path));
    return {sources, libraries};
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
        verdict.unmet.push_back("requires " + line + ", which is not installed");
      else if (fulfils(found->second, requirement.specifiers) == false)
        verdict.unmet.push_back("requires " + line + "; installed is " + found->second);
    }
    if (!claims.requires_python.empty() && fulfils(python.version, claims.requires_python) == false)
      verdict.unmet.push_back("requires Python " + claims.requires_python + "; this is " +
                              python.version);
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
  std::vector<std::pair<Distribution, std::vector<std::string>>> found_;
  std::map<std::string, std::string> installed_, places_;  // name -> version, library -> path
  std::unique_ptr<PythonProcess> plain_, with_torch_;
  std::set<const LibraryFacts*> bound_;  // every symbol of theirs is found
  std::set<std::string> loading_families_;
  std::set<std::string> opened_by_path_;  // by Python code, if at all: libraries that do not load
};

}  // namespace

std::vector<DistributionVerdict> judge_environment(const MachineFacts& machine, Disk& disk,
                                                   DriverFiles driver) {
  return PackageJudge(machine, disk, driver).run();
}

std::vector<Search> searches_for(const std::string& name, const MachineFacts& machine, Disk& disk) {
  return PackageJudge(machine, disk, DriverFiles::here).searches_for(name);
}

const char* name_of(Loads loads) {
  return loads == Loads::yes ? "yes" : loads == Loads::depends ? "depends" : "no";
}

}  // namespace wheelscope
