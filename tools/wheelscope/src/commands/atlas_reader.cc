// Reads each wheel once, in part; only the machine that `fit` is given varies afterwards.
#include "commands/atlas_reader.h"

#include <algorithm>
#include <ranges>
#include <set>

#include "answers/cover.h"
#include "findings/findings.h"
#include "packaging/claims.h"
#include "packaging/tag.h"
#include "report/text.h"
#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {
namespace {

bool is_for_glibc(const WheelClaims& claims) {
  return std::ranges::any_of(claims.file_name_tags, [](const std::string& text) {
    const auto system = system_of_tag(split_tag(text).platform);
    return system == System::glibc || system == System::linux_any_libc;
  });
}

MachineFacts machine_with(const std::string& python) {
  const PythonBuild build(python);
  PythonFacts facts{.version = build.version + ".9",
                    .abi = "cp" + build.version + (build.free_threaded ? "t" : ""),
                    .architecture = atlas_architecture};
  std::erase(facts.abi, '.');
  facts.tags = supported_tags(build.version, facts.abi,
                              {.architecture = atlas_architecture, .libc_version = atlas_glibc});
  return {.architecture = atlas_architecture,
          .libc = "glibc",
          .libc_version = atlas_glibc,
          .python = std::move(facts)};
}

// Drops the symbols that a wheel defines, unless one of its libraries takes a symbol of that name
// for torch's.
void drop_other_definitions(Item& item) {
  std::set<std::string_view> wanted;
  for (const auto& library : item.facts.libraries) {
    for (const auto& [symbol, needed] : library.torch_symbols) wanted.insert(symbol);
  }
  for (auto& library : item.facts.libraries)
    std::erase_if(library.symbols, [&](const SymbolFact& symbol) {
      return !symbol.defined || !wanted.contains(symbol.name);
    });
}

// True for a failure that neither the wheel's name nor METADATA tells of.
bool fails_by_bytes(const AtlasCell& cell) {
  return cell.fits == Fits::fails && cell.obstacle >= Obstacle::torch &&
         cell.reason.why != Why::torch_required;
}

}  // namespace

Result<std::vector<ReleaseFiles>> newest_releases(PackageIndex& index, const std::string& project,
                                                  std::size_t most) {
  std::vector<std::string> notes;
  std::map<Version, ReleaseFiles> found;
  for (const auto& file : TRY(find_files(index, project, notes))) {
    if (file.yanked) continue;
    auto wheel = wheel_of(file, project);
    const auto version = wheel ? wheel->version : version_of_sdist(file.name);
    if (!version) continue;
    auto& release = found[*version];
    release.version = *version;
    if (wheel) {
      release.spelled = wheel->claims.version;
      release.wheels.push_back(std::move(*wheel));
    } else {
      release.sdist = file.name;
    }
  }
  const bool only_finished = !index.from.prereleases &&
                             !std::ranges::all_of(std::views::keys(found), &Version::is_prerelease);
  std::vector<ReleaseFiles> releases;
  for (auto& [version, release] : std::views::reverse(found)) {
    if (only_finished && version.is_prerelease()) continue;
    if (releases.size() == most) break;
    if (release.spelled.empty()) {
      const auto stem = release.sdist.substr(release.sdist.rfind('-') + 1);
      release.spelled = stem.substr(0, stem.size() - (stem.ends_with(".zip") ? 4 : 7));
    }
    releases.push_back(std::move(release));
  }
  return releases;
}

AtlasReader::AtlasReader(PackageIndex& index, const std::vector<TorchTable>& torches)
    : index_(index), torches_(torches) {
  for (const auto& torch : torches) {
    for (const auto& python : torch.pythons) {
      const auto [user, is_new] = users_.try_emplace(python);
      if (!is_new) continue;
      user->second.machine = machine_with(python);
      user->second.required = std::make_unique<RequiredWheels>(index, user->second.machine,
                                                               std::vector<Distribution>());
    }
  }
}

void AtlasReader::count_symbols(AtlasFile& file) const {
  if (file.torch.abi != TorchAbi::cxx) return;
  std::vector<const std::string*> known;
  for (const auto& symbol : file.torch.symbols) {
    if (std::ranges::any_of(torches_,
                            [&](const TorchTable& torch) { return torch.has(symbol, true); }))
      known.push_back(&symbol);
  }
  file.known_symbols = known.size();
  for (const auto& torch : torches_)
    file.lacking[torch.minor] = static_cast<std::uint64_t>(std::ranges::count_if(
        known, [&](const std::string* symbol) { return !torch.has(*symbol, true); }));
}

AtlasReader::Wheel AtlasReader::open(const Candidate& candidate, AtlasFile& file) {
  file.file = candidate.file.name;
  file.size = candidate.file.size.value_or(0);
  Wheel wheel{.candidate = &candidate};
  auto read =
      read_remote_wheel(index_.http, nothing_, on_its_server(candidate.file), candidate.file.name,
                        metadata_of_index(index_.http, index_.cache, candidate.file), {});
  if (!read) {
    file.problem = read.error().what;
    return wheel;
  }
  wheel.remote = std::move(*read);
  wheel.readable = true;
  auto& item = wheel.remote.item;
  drop_other_definitions(item);
  file.size = item.facts.size;
  file.torch = item.verdicts.torch;
  count_symbols(file);
  file.python = item.verdicts.python;
  file.platform = item.verdicts.platform.tag;
  for (const auto& text : item.facts.wheel->requires_dist) {
    if (canonical_name(parse_requirement(text).name) == "torch")
      file.requires_torch.push_back(text);
  }
  const auto& cuda = item.verdicts.cuda;
  file.uses_device_code = cuda.runtime != CudaRuntime::none || !cuda.targets.empty();
  if (std::ranges::none_of(item.facts.libraries, &LibraryFacts::in_part)) file.gpus = cuda.gpus;
  return wheel;
}

FitVerdict AtlasReader::judge(Wheel& wheel, const std::string& python, const TorchTable& torch,
                              const std::string& cuda) {
  const auto& user = users_.at(python);
  const auto& item = wheel.remote.item;
  const auto& claims = *item.facts.wheel;
  auto machine = user.machine;
  const bool has_cuda = cuda != "cpu";
  machine.torch =
      TorchFacts{.version = torch.version + (has_cuda ? "" : "+cpu"), .cuda = has_cuda ? cuda : ""};
  if (has_cuda) machine.driver = std::ranges::max(std::views::values(cuda_table().drivers), older);
  const auto& files = wheel.remote.files;
  Lookups lookups;
  lookups.torch_has = [&](const std::string& symbol) { return torch.has(symbol, has_cuda); };
  lookups.required_wheels = [&](const std::string& library) {
    return user.required->bring({claims}, library);
  };
  lookups.numpy = [&] { return user.required->numpy_met_by({claims}); };
  lookups.imports = [&]() -> const WheelImports* {
    auto& imports = wheel.imports[python];
    if (!imports && files.read)
      imports = std::make_unique<WheelImports>(*user.machine.python, files);
    return imports.get();
  };
  lookups.refusal = [&] {
    const auto [known, is_new] = wheel.refusals.try_emplace(python);
    if (is_new) known->second = refusal_in(files, *user.machine.python);
    return known->second;
  };
  lookups.same_cuda_as_index =
      torch.cuda.starts_with(cuda) && !TorchRequirements(claims).exact().empty();
  return fit(item, machine, lookups);
}

void AtlasReader::judge_cells(std::vector<Wheel>& wheels, AtlasRelease& release) {
  for (const auto& torch : torches_) {
    for (const auto& cuda : torch.builds()) {
      const auto first = release.cells.size();
      for (const auto& python : torch.pythons) {
        const auto& machine = users_.at(python).machine;
        Wheel* best = nullptr;  // the wheel that an installer takes
        FitVerdict verdict{.fits = Fits::fails, .obstacle = Obstacle::system};
        for (auto& wheel : wheels) {
          const auto& claims = wheel.candidate->claims;
          auto by_name = fit_by_name(claims, wheel.candidate->file.name, machine);
          if (by_name.fits != Fits::works) {
            if (!best && by_name.obstacle >= verdict.obstacle) verdict = std::move(by_name);
          } else if (const auto& tags = machine.python->tags;
                     !best || rank_of(claims, tags) < rank_of(best->candidate->claims, tags)) {
            best = &wheel;
          }
        }
        if (best && best->readable)
          verdict = judge(*best, python, torch, cuda);
        else if (best)
          verdict = unread({}, "see the list of files");
        else if (!release.sdist.empty())
          verdict = {.fits = Fits::depends,
                     .obstacle = Obstacle::system,
                     .reason = {.why = Why::only_sources}};
        const auto same =
            std::find_if(release.cells.begin() + static_cast<std::ptrdiff_t>(first),
                         release.cells.end(), [&](const AtlasCell& cell) {
                           return cell.fits == verdict.fits && cell.reason == verdict.reason;
                         });
        if (same != release.cells.end())
          same->pythons.push_back(python);
        else
          release.cells.push_back({torch.minor,
                                   cuda,
                                   {python},
                                   verdict.fits,
                                   verdict.obstacle,
                                   std::move(verdict.reason)});
      }
    }
  }
}

// Finds promises of METADATA that the bytes do not keep.
void AtlasReader::find_claims(std::vector<Wheel>& wheels, AtlasRelease& release) {
  // One claim of each kind: a fault of several wheels is reported for the first one only.
  auto add = [&](AtlasClaim claim) {
    if (!contains(release.false_claims, claim.id, &AtlasClaim::id))
      release.false_claims.push_back(std::move(claim));
  };
  for (auto& wheel : wheels) {
    if (!wheel.readable) continue;
    const auto& item = wheel.remote.item;
    for (const auto& finding : check(item, {})) {
      if (finding.level != Finding::Level::error) continue;  // a requirement may bring it
      if (finding.id == "tag-platform" || finding.id == "tag-python" ||
          finding.id == "tag-machine" || finding.id == "needed")
        add({.id = finding.id, .what = finding.what});
    }
    TorchRequirements requirements(*item.facts.wheel);
    if (requirements.empty() && item.verdicts.torch.abi != TorchAbi::none)
      add({.id = "requirement",
           .what = "it is built on torch, and METADATA does not require torch"});
  }
  // A torch is promised in vain if it fails with every CUDA, and METADATA does not say so.
  std::vector<std::string> in_vain;
  Reason last;
  const TorchTable* newest = nullptr;
  for (const auto& torch : torches_) {
    bool admitted = false, loads = false;
    Reason reason;
    for (const auto& cell : release.cells) {
      if (cell.torch != torch.minor) continue;
      admitted |= cell.fits == Fits::works || fails_by_bytes(cell);
      // A wrong CUDA says nothing against torch's version.
      loads |= cell.fits != Fits::fails || cell.obstacle > Obstacle::torch;
      if (fails_by_bytes(cell)) reason = cell.reason;
    }
    if (admitted) newest = &torch;
    if (!admitted || loads || !reason) continue;
    in_vain.push_back(torch.minor);
    last = reason;
  }
  if (last)
    add({"torch",
         "METADATA allows torch " + joined(in_vain) + ", with which it fails: " + reason_text(last),
         in_vain});
  if (!newest) return;
  const auto major = newest->cuda.empty() ? "cpu" : major_of(newest->cuda);
  Reason reason;
  bool loads = false;
  for (const auto& cell : release.cells) {
    if (cell.torch != newest->minor || cell.cuda != major) continue;
    loads |= cell.fits != Fits::fails;
    if (fails_by_bytes(cell)) reason = cell.reason;
  }
  if (!loads && reason)
    add({"default",
         "an installer adds torch " + newest->version + " with " +
             (newest->cuda.empty() ? "no CUDA" : "CUDA " + newest->cuda) +
             ", with which it fails: " + reason_text(reason),
         {newest->minor}});
}

AtlasRelease AtlasReader::read(const ReleaseFiles& files) {
  AtlasRelease release{
      .version = files.spelled, .wheels = files.wheels.size(), .sdist = files.sdist};
  std::set<std::string> architectures;
  std::vector<Wheel> wheels;
  for (const auto& candidate : files.wheels) {
    const bool is_pure_wheel = is_pure(candidate.claims);
    if (!is_pure_wheel && !is_for_glibc(candidate.claims)) continue;
    release.linux_wheels += !is_pure_wheel;
    bool is_ours = is_pure_wheel;
    for (const auto& tag : candidate.claims.file_name_tags) {
      const auto architecture = architecture_of_tag(split_tag(tag).platform);
      is_ours |= architecture == atlas_architecture;
      if (!is_pure_wheel) architectures.insert(architecture);
    }
    if (!is_ours) continue;
    wheels.push_back(open(candidate, release.files.emplace_back()));
  }
  release.architectures = architectures.size();
  judge_cells(wheels, release);
  find_claims(wheels, release);
  for (std::size_t i = 0; i < wheels.size(); ++i) {
    if (wheels[i].readable) release.files[i].read = wheels[i].remote.remote->read();
  }
  return release;
}

}  // namespace wheelscope
