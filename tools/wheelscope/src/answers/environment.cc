// Goes through the distributions of an environment.
#include "answers/environment.h"

#include <algorithm>
#include <tuple>

#include "answers/cover.h"
#include "answers/environment_judge.h"
#include "answers/owners.h"
#include "answers/wheel_imports.h"
#include "machine/imports.h"
#include "packaging/requirement.h"
#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {

bool chooses_kernels_itself(const Distribution& distribution) {
  return distribution.name.starts_with("nvidia-");
}

// Adds the folders of PYTHONPATH and .pth files.
static MachineFacts with_all_folders(MachineFacts machine) {
  auto& folders = machine.python->site_packages;
  folders = import_folders(folders);
  return machine;
}

EnvironmentJudge::EnvironmentJudge(const MachineFacts& machine, Disk& disk, DriverFiles driver)
    : machine_(with_all_folders(machine)),
      disk_(disk),
      modules_(*machine_.python),
      imports_(*machine_.python, tree_here()),
      trusts_driver_(driver == DriverFiles::elsewhere && !machine.driver.empty()) {
  std::vector<FileToRead> all;
  auto distributions = list_distributions(machine_.python->site_packages);
  auto odd = compare_with_records(distributions, machine.python->prefix);
  for (const auto& one : distributions) installed_[one.name] = one.version;
  for (const auto& one : distributions) find_unmet(one);
  for (std::size_t i = 0; i < distributions.size(); ++i) {
    auto& distribution = distributions[i];
    auto files = shared_libraries_of(distribution);
    const bool device_code = !machine.gpus.empty() && !chooses_kernels_itself(distribution);
    for (const auto& path : files) all.push_back({path, device_code});
    if (!files.empty() || !odd[i].empty())
      found_.push_back({std::move(distribution), std::move(files), std::move(odd[i])});
  }
  disk_.read_all(all);
  for (const auto& file : all) {
    if (const auto* library = disk_.open(file.path);
        library && library->machine == machine.architecture)
      places_.try_emplace(base_name(file.path), file.path);
    seen_.libraries.push_back(file.path);
  }
}

SourceTree EnvironmentJudge::tree_here() {
  auto tree = tree_of_disk();
  tree.is_standard = [this](const std::string& name) { return modules_.is_standard(name); };
  return tree;
}

std::vector<DistributionVerdict> EnvironmentJudge::run() {
  std::vector<DistributionVerdict> verdicts;
  for (auto& [distribution, files, odd] : found_) {
    auto verdict = judge(distribution, files, std::move(odd));
    if (verdict.libraries > 0 || !verdict.files.empty() || !verdict.broken.empty())
      verdicts.push_back(std::move(verdict));
  }
  wheelscope::judge_imports(verdicts, seen_, imports_, disk_);
  for (auto& verdict : verdicts) find_refusal(verdict);
  return verdicts;
}

std::vector<Search> EnvironmentJudge::searches_for(const std::string& name) {
  std::vector<Search> searches;
  std::set<std::string> asked;  // the libraries whose search was told
  for (const auto& [distribution, files, odd] : found_) {
    for (const auto& path : files) {
      const auto* library = disk_.open(path);
      if (!library || !is_opened(distribution, *library)) continue;
      auto& process = process_for(*library);
      const auto opening = process.open(path);
      for (const auto* one : opening.scope) {
        if (contains(one->facts->needed, name) && asked.insert(one->path).second)
          searches.push_back(search(process.loader(), name, *one));
      }
    }
  }
  return searches;
}

DistributionVerdict EnvironmentJudge::judge(const Distribution& distribution,
                                            const std::vector<std::string>& files,
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
  if (verdict.libraries > 0) doubt_layout(claims_of(distribution), files, verdict);
  return verdict;
}

void EnvironmentJudge::doubt_layout(const WheelClaims& claims,
                                    const std::vector<std::string>& files,
                                    DistributionVerdict& verdict) {
  if (!machine_.torch || verdict.distribution.name == "torch") return;
  std::vector<const LibraryFacts*> libraries;
  for (const auto& path : files) {
    const auto* library = disk_.open(path);
    if (library && library->machine == machine_.architecture) libraries.push_back(library);
  }
  TorchRequirements requirements(claims);
  const auto* library = of_either_layout(libraries, cell_of(machine_), requirements);
  if (!library || contains(verdict.broken, library->path, &BrokenLibrary::path)) return;
  BrokenLibrary broken{
      .path = library->path, .loads = Loads::depends, .trouble = Trouble::torch_layout};
  broken.explanation = {
      .symptom = {.message = "it loads, but may take one field of a tensor for another",
                  .library = library->path},
      .what = std::string(layout_doubt),
      .because = {std::string(layout_doubt)},
      .fixes = {std::string(layout_cure)}};
  verdict.broken.push_back(std::move(broken));
}

void EnvironmentJudge::find_refusal(DistributionVerdict& verdict) {
  const OtherModules others{[&](const std::string& module) { return modules_.may_have(module); },
                            [&](const std::string& module, const std::string& name) {
                              return modules_.may_have(module, name);
                            },
                            [&](const std::string& library) {
                              return places_.contains(library) ||
                                     !process_for({}).loader().search(library, nullptr).empty();
                            },
                            {},
                            modules_.is_open() ? nullptr : &imports_};
  verdict.refusal = refusal_in(installed_files(verdict.distribution), *machine_.python, others);
  const auto need = verdict.refusal.need;
  if (need != Need::never)
    verdict.loads = std::max(verdict.loads, need == Need::always ? Loads::no : Loads::depends);
}

void EnvironmentJudge::find_unmet(const Distribution& distribution) {
  const auto claims = claims_of(distribution);
  const auto& python = *machine_.python;
  const auto environment = linux_environment(python.version, python.architecture);
  std::vector<UnmetRequirement> unmet;
  for (const auto& requirement : requirements_here(claims.requires_dist, environment)) {
    const auto found = installed_.find(canonical_name(requirement.name));
    if (found == installed_.end())
      unmet.push_back({.requirement = requirement.text});
    else if (fulfils(found->second, requirement.specifiers) == false)
      unmet.push_back({.requirement = requirement.text, .installed = found->second});
  }
  if (!claims.requires_python.empty() && fulfils(python.version, claims.requires_python) == false)
    unmet.push_back({claims.requires_python, python.version, true});
  if (!unmet.empty()) seen_.unmet.emplace_back(distribution, std::move(unmet));
}

void EnvironmentJudge::find_unserved(const LibraryFacts& library,
                                     DistributionVerdict& verdict) const {
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

std::vector<DistributionVerdict> judge_environment(const MachineFacts& machine, Disk& disk,
                                                   DriverFiles driver) {
  return EnvironmentJudge(machine, disk, driver).run();
}

std::vector<Search> searches_for(const std::string& name, const MachineFacts& machine, Disk& disk) {
  return EnvironmentJudge(machine, disk, DriverFiles::here).searches_for(name);
}

}  // namespace wheelscope
