// Files of a distribution that are missing, cut off, or for another Python or processor.
#include <algorithm>
#include <filesystem>

#include "answers/environment_judge.h"
#include "machine/imports.h"
#include "source/source.h"
#include "text/text.h"

namespace wheelscope {

void PackageJudge::lose(const std::string& path, const std::string& kind, Loads loads,
                        const std::string& what, DistributionVerdict& verdict) {
  const auto& [name, version, folder, dist_info] = verdict.distribution;
  seen_.lost.insert(path);
  // Python imports a folder of the module's name in its place, as one without code.
  std::error_code error;
  if (std::filesystem::is_directory(path.substr(0, path.find('.', path.rfind('/'))), error))
    loads = Loads::depends;
  verdict.broken.push_back(
      {.path = path,
       .loads = loads,
       .trouble = Trouble::file,
       .explanation = {
           .symptom = {.kind = kind, .message = path + ": " + what, .library = path},
           .what = what,
           .fixes = {"pip install --force-reinstall --no-deps " + name + "==" + version}}});
}

void PackageJudge::find_lost_files(DistributionVerdict& verdict) {
  for (const auto& [state, path] : verdict.files) {
    const auto name = base_name(path);
    const bool code = name.ends_with(".py") || name.ends_with(".so");
    if (!code || (name.ends_with(".so") && !is_module_for(*machine_.python, name))) continue;
    if (state == FileState::missing)
      lose(path, SymptomKind::damaged_file, name == "__init__.py" ? Loads::depends : Loads::no,
           "the file is missing, though it was installed", verdict);
    const auto* library = state == FileState::shortened ? disk_.open(path) : nullptr;
    if (library && !library->cut_off) continue;  // what is gone is not loaded: symbols, sections
    if (state == FileState::shortened)
      lose(path, SymptomKind::damaged_file, name.ends_with(".so") ? Loads::no : Loads::depends,
           "the file has lost bytes since it was installed", verdict);
  }
}

bool PackageJudge::is_cut_off(const std::string& path) const {
  if (!path.ends_with(".so") || !is_module_for(*machine_.python, path)) return false;
  const auto source = Source::map(path);
  return source && (source->bytes().size() == 0 || looks_like_elf(source->bytes()));
}

bool PackageJudge::is_for_others(const LibraryFacts& library, const std::vector<std::string>& files,
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

}  // namespace wheelscope
