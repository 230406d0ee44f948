// Judges each wheel as `fit` does, with the torch and the NumPy of the set.
#include "commands/package_set.h"

#include <algorithm>

#include "answers/cover.h"
#include "answers/owners.h"
#include "answers/required_modules.h"
#include "commands/inputs.h"
#include "commands/required_wheels.h"
#include "packaging/requirement.h"
#include "source/budget.h"
#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {

using resolver::Clash;
using resolver::Solution;
using resolver::VersionSet;

namespace {

// True if another torch may help.
bool is_of_torch(const FitVerdict& verdict) {
  const auto& library = verdict.reason.what;
  return verdict.obstacle == Obstacle::torch || verdict.obstacle == Obstacle::cuda ||
         (verdict.obstacle == Obstacle::library &&
          (is_torch_library(library) || cuda_libraries().contains(library)));
}

}  // namespace

// True for wheels whose bytes are read. Wheels of torch and CUDA have true tags, and their tables
// lie behind hundreds of megabytes: metadata is enough to judge them.
bool SetJudge::is_read(const std::string& package, std::size_t version) {
  const auto& wheel = universe_.release(package, version).wheel;
  const bool large = package == "torch" || package.starts_with("nvidia-");
  return wheel && !is_pure(wheel->claims) && (!large || wishes_.deep);
}

// Returns its files; nothing if they could not be read.
const std::optional<WheelFiles>& SetJudge::files_of(const std::string& package,
                                                    std::size_t version) {
  const auto [found, is_new] = files_.try_emplace({package, version});
  auto& files = found->second;
  const auto& wheel = universe_.release(package, version).wheel;
  if (!is_new || !wheel) return files;
  if (const auto looked = looked_into_.find({package, version}); looked != looked_into_.end()) {
    if (looked->second.problem.empty()) files = looked->second.files;
  } else if (auto opened = Remote::open(index_.http, index_.cache, on_its_server(wheel->file))) {
    const auto remote = std::make_shared<const Remote>(std::move(*opened));
    if (auto read = files_of_wheel(remote->bytes(), remote)) files = std::move(*read);
  }
  return files;
}

SetJudge::LookedInto SetJudge::look_into(const Candidate& wheel, bool numpy) {
  const auto& file = wheel.file;
  auto read = read_remote_wheel(index_.http, index_.cache, on_its_server(file), file.name, {},
                                {.deep = wishes_.deep, .numpy = numpy});
  if (!read) return {.problem = read.error().what};
  return {.item = std::move(read->item),
          .files = std::move(read->files),
          .remote = std::move(read->remote)};
}

void SetJudge::look_into(const Solution& solution) {
  std::vector<Key> keys;
  std::vector<const Candidate*> wheels;
  for (const auto& [package, version] : solution) {
    if (!PackageUniverse::extra_of(package).empty() || !is_read(package, version) ||
        looked_into_.contains({package, version}))
      continue;
    keys.emplace_back(package, version);
    wheels.push_back(&*universe_.release(package, version).wheel);
  }
  std::vector<LookedInto> found(keys.size());
  const unsigned files_at_once = wishes_.deep ? 1 : 8;
  run_in_parallel(keys.size(), files_at_once, [&](std::size_t i) {
    found[i] = look_into(*wheels[i], solution.contains("numpy"));
  });
  for (std::size_t i = 0; i < keys.size(); ++i)
    looked_into_.emplace(std::move(keys[i]), std::move(found[i]));
}

std::optional<TorchFacts> SetJudge::torch_facts(std::size_t version) {
  const auto& claims = universe_.claims("torch", version);
  if (!claims) return std::nullopt;
  return TorchFacts{.version = claims->version, .cuda = cuda_of_torch(*claims, machine_)};
}

void SetJudge::judge_torch(std::size_t version, std::vector<Clash>& clashes) {
  const auto facts = torch_facts(version);
  if (!facts) return;
  auto rule_out = [&](ClashReason why) {
    why.kind = ClashReason::Kind::judged;
    clashes.push_back({{{"torch", VersionSet(universe_.count_versions("torch")).add(version)}},
                       universe_.because(std::move(why))});
  };
  const auto cuda = facts->cuda.empty() ? "cpu" : facts->cuda;
  const auto major = major_of(facts->cuda);
  if (!wishes_.cuda.empty() && cuda != wishes_.cuda && major != wishes_.cuda)
    return rule_out({.text = cuda == "cpu"
                                 ? "is a build for CPUs, and --cuda asks for another"
                                 : "brings CUDA " + cuda + ", and --cuda asks for another"});
  const auto& drivers = cuda_table().drivers;
  const auto needed = drivers.find(major);
  if (!machine_.driver.empty() && needed != drivers.end() && older(machine_.driver, needed->second))
    rule_out(
        {.reason = {.why = Why::driver_older, .version = needed->second, .here = machine_.driver}});
}

// Tells whether another package of the set has the library: it may have been imported, and the
// library loaded, before.
Brought SetJudge::brings(const std::string& package, const Solution& solution,
                         const std::string& library) {
  auto brought = Brought::no;
  for (const auto& [name, version] : solution) {
    if (name == package || !PackageUniverse::extra_of(name).empty()) continue;
    const auto& wheel = universe_.release(name, version).wheel;
    if (!wheel || is_pure(wheel->claims) || name == "torch") continue;
    const auto& files = files_of(name, version);
    if (!files) brought = Brought::unknown;
    if (files && contains(files->names, library, base_name)) return Brought::yes;
  }
  return brought;
}

// True if a package of the set has a module, or may have it.
bool SetJudge::may_bring_module(const Solution& solution, const std::string& module) {
  const auto bears_its_name = [&](const auto& one) {
    return one.first == canonical_name(module.substr(0, module.find('.')));
  };
  if (std::ranges::any_of(solution, bears_its_name)) return true;
  return std::ranges::any_of(solution, [&](const auto& one) {
    if (!PackageUniverse::extra_of(one.first).empty()) return false;
    const auto& files = files_of(one.first, one.second);
    return !files || has_module(files->names, module);
  });
}

// Finds the first package of the set that has a module. Null: none, nor anything that is installed;
// nothing: unknown.
std::optional<const WheelFiles*> SetJudge::find_in(const Solution& solution,
                                                   const std::string& module) {
  const auto top = module.substr(0, module.find('.'));
  if (top == "torch" || top == "nvidia" || modules_->is_open() || modules_->is_standard(top))
    return std::nullopt;
  bool all_known = true;
  for (const auto& [name, version] : solution) {
    if (!PackageUniverse::extra_of(name).empty() || name == "torch" || name.starts_with("nvidia-"))
      continue;
    const auto& files = files_of(name, version);
    if (files && has_module(files->names, module)) return &*files;
    all_known &= files.has_value();
  }
  return all_known && !modules_->is_installed(module) ? std::optional<const WheelFiles*>(nullptr)
                                                      : std::nullopt;
}

// Returns what keeps a package from being imported, given what is installed here and what the set
// brings.
Refusal SetJudge::refusal_of(const WheelFiles& files, const std::string& package,
                             const Solution& solution) {
  RequiredModules modules(*machine_.python,
                          [&](const std::string& module) { return find_in(solution, module); });
  return refusal_in(
      files, *machine_.python,
      {.may_be_there =
           [&](const std::string& module) {
             return modules_->may_have(module) || may_bring_module(solution, module);
           },
       .may_have = [&](const std::string& module,
                       const std::string& name) { return modules_->may_have(module, name); },
       .may_open =
           [&](const std::string& library) {
             return lookups_.system_library(library) ||
                    brings(package, solution, library) != Brought::no;
           },
       .lacking = [&](const ImportStatement& statement) { return modules.lacking(statement); }});
}

FitVerdict SetJudge::judge(const std::string& package, const Solution& solution) {
  auto& looked = looked_into_.at({package, solution.at(package)});
  const auto& name = universe_.release(package, solution.at(package)).wheel->file.name;
  if (!looked.problem.empty()) return unread(name, looked.problem);
  auto machine = machine_;
  machine.cuda_libraries.clear();
  const auto torch = solution.find("torch");
  machine.torch = torch == solution.end() ? std::nullopt : torch_facts(torch->second);
  auto lookups = lookups_;
  lookups.required_wheels = [&](const std::string& library) {
    return brings(package, solution, library);
  };
  lookups.numpy = [&]() -> std::vector<MetNumpy> {
    const auto numpy = solution.find("numpy");
    return {{numpy == solution.end() ? "" : universe_.release("numpy", numpy->second).spelled}};
  };
  lookups.imports = [&] {
    if (!looked.imports && looked.files.read)
      looked.imports = std::make_shared<WheelImports>(*machine_.python, looked.files);
    return looked.imports.get();
  };
  lookups.refusal = [&] {
    if (!looked.refusal) looked.refusal = refusal_in(looked.files, *machine_.python);
    return *looked.refusal;
  };
  const auto& claims = looked.item.facts.wheel;
  lookups.same_cuda_as_index = claims && !TorchRequirements(*claims).exact().empty();
  auto verdict = wheelscope::fit(looked.item, machine, lookups);
  verdict.size = looked.item.facts.size;
  verdict.read = looked.remote->read();
  return verdict;
}

// Returns the clash between a package and the other package that its failure is about, for all
// versions with which it is the same. A doubt that remains with every version is no clash.
std::optional<Clash> SetJudge::clash_of(const std::string& package, const Solution& solution,
                                        const FitVerdict& verdict) {
  const bool is_doubt = verdict.fits == Fits::depends;
  const auto version = solution.at(package);
  Clash clash{{{package, VersionSet(universe_.count_versions(package)).add(version)}},
              universe_.because({.kind = ClashReason::Kind::judged, .reason = verdict.reason})};
  const bool numpy = verdict.obstacle == Obstacle::numpy;
  if (!numpy && !is_of_torch(verdict))
    return is_doubt ? std::nullopt : std::optional(std::move(clash));
  const std::string other = numpy ? "numpy" : "torch";
  VersionSet failing(universe_.count_versions(other)), allowed = ~VersionSet(failing.versions());
  if (const auto& claims = universe_.claims(package, version)) {
    for (const auto& one : universe_.requirements(*claims, "")) {
      if (canonical_name(one.name) == other)
        allowed = allowed & universe_.allowed(other, one.specifiers);
    }
  }
  if (!numpy) universe_.expect_all(other, allowed);
  bool another_helps = false;
  for (std::size_t i = 0; i <= failing.versions(); ++i) {
    if (!allowed.contains(i)) continue;
    auto changed = solution;
    if (i == failing.absent()) {
      changed.erase(other);
    } else {
      if (!universe_.release(other, i).wheel) continue;
      changed[other] = i;
    }
    const auto again = judge(package, changed);
    if ((again.fits == Fits::fails || (is_doubt && again.fits == Fits::depends)) &&
        (numpy ? again.obstacle == Obstacle::numpy : is_of_torch(again)))
      failing.add(i);
    else
      another_helps |= i != failing.absent();
  }
  if (is_doubt && !another_helps) return std::nullopt;
  clash.terms.push_back({other, failing});
  return clash;
}

std::vector<Clash> SetJudge::check(const Solution& solution) {
  std::vector<Clash> clashes;
  const auto torch = solution.find("torch"), numpy = solution.find("numpy");
  if (torch != solution.end()) judge_torch(torch->second, clashes);
  if (torch != solution.end() && numpy != solution.end()) {
    // torch is not read: its wheels up to 2.2 are built for NumPy 1.
    const auto old = universe_.allowed("torch", "<2.3"), later = universe_.allowed("numpy", ">=2");
    const auto& here = universe_.release("numpy", numpy->second).spelled;
    if (old.contains(torch->second) && later.contains(numpy->second))
      clashes.push_back(
          {{{"torch", old}, {"numpy", later}},
           universe_.because({.kind = ClashReason::Kind::judged,
                              .reason = {.why = Why::numpy_one, .who = "torch", .here = here}})});
  }
  if (!clashes.empty()) return clashes;
  look_into(solution);
  for (const auto& [package, version] : solution) {
    if (!looked_into_.contains({package, version})) continue;
    const auto verdict = judge(package, solution);
    if (verdict.fits == Fits::works || (verdict.fits == Fits::depends && !avoid_doubts_)) continue;
    if (auto clash = clash_of(package, solution, verdict)) {
      had_doubts_ |= verdict.fits == Fits::depends;
      clashes.push_back(std::move(*clash));
    }
  }
  return clashes;
}

SetJudge::Judged SetJudge::judged(const std::string& package, const Solution& solution,
                                  bool is_imported) {
  const auto version = solution.at(package);
  if (const auto looked = looked_into_.find({package, version}); looked != looked_into_.end()) {
    auto verdict = judge(package, solution);
    // Another set may bring what is missing, so that this one is a doubt rather than a failure.
    if (verdict.fits == Fits::works && is_imported && modules_) {
      const auto refusal = refusal_of(looked->second.files, package, solution);
      if (refusal.need != Need::never) {
        verdict.fits = Fits::depends;
        verdict.obstacle = Obstacle::python;
        verdict.reason = refusal.reason;
      }
    }
    return {std::move(verdict), true};
  }
  const auto& release = universe_.release(package, version);
  if (release.wheel) return {{.file = release.wheel->file.name}, false};
  return {{.file = release.sdist ? release.sdist->name : "",
           .fits = Fits::depends,
           .obstacle = Obstacle::system,
           .reason = {.why = Why::only_sources}},
          false};
}

std::uint64_t SetJudge::read() const {
  std::uint64_t sum = 0;
  for (const auto& [key, looked] : looked_into_) sum += looked.remote ? looked.remote->read() : 0;
  return sum;
}

std::uint64_t SetJudge::size() const {
  std::uint64_t sum = 0;
  for (const auto& [key, looked] : looked_into_) sum += looked.item.facts.size;
  return sum;
}

}  // namespace wheelscope
