// Follows the imports of each distribution to the files that are broken.
#include "answers/environment_judge.h"

#include <algorithm>

#include "answers/owners.h"
#include "machine/imports.h"
#include "machine/python_source.h"
#include "source/source.h"
#include "text/text.h"

namespace wheelscope {
namespace {

class ImportJudge {
 public:
  ImportJudge(const FilesSeen& seen, Imports& imports, Disk& disk)
      : seen_(seen), imports_(imports), disk_(disk) {}

  void run(std::vector<DistributionVerdict>& verdicts) {
    for (const auto& path : seen_.lost) imports_.add_lost(path);
    for (const auto& path : seen_.libraries) {
      const auto* library = disk_.open(path);
      if (library && library->python_module && library->numpy) imports_.add_import(path, "numpy");
    }
    for (auto& verdict : verdicts) {
      if (verdict.broken.empty()) continue;
      const auto names = import_names(verdict.distribution);
      for (const auto& path : shared_libraries_of(verdict.distribution)) add_named(path, names);
      const auto run = imports_.files_run_by(names);
      const auto openings = openings_of(verdict, names, run);
      for (auto& library : verdict.broken) {
        library.need = need_of(library, names, run, openings);
        if (library.need == Need::never) continue;
        verdict.loads =
            std::max(verdict.loads, library.need == Need::always ? library.loads : Loads::depends);
      }
      std::erase_if(verdict.broken, [&](const BrokenLibrary& library) {
        return library.need == Need::never && seen_.opened_by_path.contains(library.path);
      });
    }
    blame_imported(verdicts);
    doubt_unmet(verdicts);
    doubt_tried_files(verdicts);
  }

 private:
  Need need_of(const BrokenLibrary& library, const std::vector<std::string>& names,
               const std::map<std::string, Need>& run, const Openings& openings) {
    const auto& path = library.path;
    if (!seen_.opened_by_path.contains(path) && names.empty()) return Need::always;
    if (const auto found = run.find(path); found != run.end()) return found->second;
    if (library.trouble != Trouble::file && must_open(openings, path)) return Need::always;
    if (seen_.opened_by_path.contains(path)) return Need::never;
    if (path.ends_with(".py")) return is_named_in_source(path, run) ? Need::depends : Need::never;
    return openings.mentions(stem_of(path)) || is_named_in_machine_code(stem_of(path), run)
               ? Need::depends
               : Need::never;
  }

  // Machine code that has the name of a module of its own package may import it.
  void add_named(const std::string& path, const std::vector<std::string>& names) {
    const auto* library = disk_.open(path);
    if (!library || !library->python_module || seen_.lost.contains(path)) return;
    const auto source = Source::map(path);
    if (!source) return;
    for (const auto& name : modules_named_in(source->bytes().text(), {names.begin(), names.end()}))
      imports_.add_import(path, name, Need::depends);
  }

  // Whether source that the import runs has the name of a module in quotes, and imports some by
  // names: `"BaseModel": (__package__, ".main")`, as pydantic does when it is asked for the name.
  bool is_named_in_source(const std::string& module, const std::map<std::string, Need>& run) const {
    const bool is_package = base_name(module) == "__init__.py";
    const auto name = is_package ? base_name(folder_of(module)) : stem_of(module);
    return std::ranges::any_of(run, [&](const auto& one) {
      if (!one.first.ends_with(".py")) return false;
      const auto text = imports_.text_of(one.first).value_or("");
      if (text.find("import_module(") == text.npos && text.find("__import__(") == text.npos)
        return false;
      return std::ranges::any_of(std::string_view("'\""), [&](char quote) {
        const auto end = name + quote;
        return text.find(quote + end) != text.npos || text.find("." + end) != text.npos;
      });
    });
  }

  // True if a module that the import runs has a name among its texts, and so may import something
  // of that name.
  bool is_named_in_machine_code(const std::string& name,
                                const std::map<std::string, Need>& run) const {
    return std::ranges::any_of(run, [&](const auto& one) {
      if (!one.first.ends_with(".so") || seen_.lost.contains(one.first)) return false;
      const auto source = Source::map(one.first);
      return source && mentions(source->bytes().text(), name);
    });
  }

  // True if the name is a whole text or the last part of one.
  static bool mentions(std::string_view bytes, const std::string& name) {
    const auto wanted = name + '\0';
    for (auto at = find_in(bytes, wanted); at != bytes.npos; at = find_in(bytes, wanted, at + 1))
      if (at > 0 && (bytes[at - 1] == '\0' || bytes[at - 1] == '.')) return true;
    return false;
  }

  // A distribution that imports a file that does not load does not load either; nor does one that
  // imports a package which opens a library that does not.
  void blame_imported(std::vector<DistributionVerdict>& verdicts) {
    std::map<std::string, std::pair<std::string, Loads>> broken;  // file -> distribution
    for (const auto& verdict : verdicts) {
      const auto blame = [&](const std::string& file, Loads loads) {
        const auto& name = verdict.distribution.name;
        const auto [known, is_new] = broken.try_emplace(file, name, loads);
        known->second.second = std::max(known->second.second, loads);
      };
      for (const auto& library : verdict.broken) {
        blame(library.path, library.loads);
        const bool opened =
            seen_.opened_by_path.contains(library.path) && library.need == Need::always;
        const bool perhaps = library.trouble == Trouble::file && library.need == Need::depends;
        if (!opened && !perhaps) continue;
        for (const auto& file : files_of_names(verdict.distribution))
          blame(file, opened ? library.loads : Loads::depends);
      }
    }
    if (broken.empty()) return;
    for (auto& verdict : verdicts) {
      if (verdict.loads == Loads::no) continue;
      const auto reached = imports_.reached(import_names(verdict.distribution));
      for (const auto& [file, blamed] : broken) {
        const auto found = reached.find(file);
        if (found == reached.end() || blamed.first == verdict.distribution.name) continue;
        const auto loads = found->second == Need::always ? blamed.second : Loads::depends;
        if (loads <= verdict.loads) continue;
        verdict.loads = loads;
        verdict.imports = blamed.first;
      }
      if (verdict.loads == Loads::yes) suspect_machine_code(verdicts, reached, verdict);
    }
  }

  // Machine code that contains the name of a package that does not load may import it.
  void suspect_machine_code(const std::vector<DistributionVerdict>& verdicts,
                            const std::map<std::string, Need>& reached,
                            DistributionVerdict& verdict) const {
    for (const auto& other : verdicts) {
      if (other.loads != Loads::no || !other.imports.empty() || &other == &verdict) continue;
      const auto names = import_names(other.distribution);
      if (std::ranges::none_of(
              names, [&](const auto& name) { return is_named_in_machine_code(name, reached); }))
        continue;
      verdict.loads = Loads::depends;
      verdict.imports = other.distribution.name;
      return;
    }
  }

  // A distribution with an unmet requirement may fail, and so may all that import it.
  void doubt_unmet(std::vector<DistributionVerdict>& verdicts) {
    if (seen_.unmet.empty()) return;
    for (auto& verdict : verdicts) {
      const auto reached = imports_.reached(import_names(verdict.distribution));
      for (const auto& [distribution, unmet] : seen_.unmet) {
        const bool own = distribution.name == verdict.distribution.name;
        if (!own && std::ranges::none_of(files_of_names(distribution), [&](const auto& file) {
              const auto found = reached.find(file);
              return found != reached.end() && found->second != Need::never;
            }))
          continue;
        for (auto one : unmet) {
          if (!own) one.by = distribution.name;
          verdict.unmet.push_back(std::move(one));
        }
        verdict.loads = std::max(verdict.loads, Loads::depends);
      }
    }
  }

  // A library that was cut off may end the process, where code would go on after an error; source
  // that may not be read raises another error than an absent module.
  void doubt_tried_files(std::vector<DistributionVerdict>& verdicts) {
    std::map<std::string, std::string> troubled;  // file -> distribution
    for (const auto& verdict : verdicts) {
      for (const auto& [state, path] : verdict.files)
        if (state == (path.ends_with(".so") ? FileState::shortened : FileState::unreadable) &&
            seen_.lost.contains(path))
          troubled.emplace(path, verdict.distribution.name);
    }
    if (troubled.empty()) return;
    for (auto& verdict : verdicts) {
      if (verdict.loads != Loads::yes) continue;
      const auto tried = imports_.reached_or_tried(import_names(verdict.distribution));
      for (const auto& [path, name] : troubled) {
        if (!tried.contains(path)) continue;
        verdict.loads = Loads::depends;
        if (name != verdict.distribution.name) verdict.imports = name;
        for (auto& library : verdict.broken)
          if (library.path == path) library.need = Need::depends;
      }
    }
  }

  // The files that an import of anything of the distribution runs.
  static std::vector<std::string> files_of_names(const Distribution& distribution) {
    std::vector<std::string> files;
    for (auto name : import_names(distribution)) {
      std::ranges::replace(name, '.', '/');
      files.push_back(distribution.path_of(name + "/__init__.py"));
      files.push_back(distribution.path_of(name + ".py"));
    }
    return files;
  }

  bool must_open(const Openings& openings, const std::string& path) {
    if (seen_.opened_by_path.contains(path)) return openings.must_open_by_name(stem_of(path));
    const bool another_loads = seen_.loading_families.contains(library_family(path));
    return disk_.open(path)->python_module ? openings.must_open_module(stem_of(path))
                                           : openings.must_open(stem_of(path), another_loads);
  }

  // The libraries that the distribution's own files open.
  Openings openings_of(const DistributionVerdict& verdict, const std::vector<std::string>& names,
                       const std::map<std::string, Need>& run) {
    std::vector<const PythonSource*> sources;
    for (const auto& name : names) {
      const auto folder = verdict.distribution.path_of(name) + "/";
      for (auto file = run.lower_bound(folder); file != run.end(); ++file) {
        if (!file->first.starts_with(folder)) break;
        sources.push_back(&imports_.source_of(file->first));
      }
    }
    std::set<std::string> libraries;
    for (const auto& path : shared_libraries_of(verdict.distribution))
      libraries.insert(stem_of(path));
    return {sources, libraries};
  }

  const FilesSeen& seen_;
  Imports& imports_;
  Disk& disk_;
};

}  // namespace

void judge_imports(std::vector<DistributionVerdict>& verdicts, const FilesSeen& seen,
                   Imports& imports, Disk& disk) {
  ImportJudge(seen, imports, disk).run(verdicts);
}

}  // namespace wheelscope
