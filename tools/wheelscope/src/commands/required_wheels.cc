// Follows requirements from wheel to wheel, breadth first, until a wheel has what is asked for.
#include "commands/required_wheels.h"

#include <algorithm>
#include <deque>

#include "answers/fit.h"
#include "commands/remote_wheel.h"
#include "index/candidates.h"
#include "packaging/claims.h"
#include "packaging/requirement.h"
#include "packaging/tag.h"
#include "text/text.h"

namespace wheelscope {

std::size_t rank_of(const WheelClaims& claims, const std::vector<std::string>& tags) {
  auto best = tags.size();
  for (const auto& tag : claims.file_name_tags)
    best = std::min(best, static_cast<std::size_t>(std::ranges::find(tags, tag) - tags.begin()));
  return best;
}

bool is_pure(const WheelClaims& claims) {
  return std::ranges::all_of(claims.file_name_tags, [](const std::string& tag) {
    return split_tag(tag).platform == "any";
  });
}

namespace {

void add_specifiers(std::string& all, const Requirement& requirement) {
  all += (all.empty() || requirement.specifiers.empty() ? "" : ",") + requirement.specifiers;
}

}  // namespace

RequiredWheels::RequiredWheels(PackageIndex& index, const MachineFacts& machine,
                               const std::vector<Distribution>& installed)
    : index_(index),
      machine_(machine),
      environment_(linux_environment(machine.python->version, machine.architecture)) {
  for (const auto& one : installed) installed_.emplace(one.name, one);
}

Brought RequiredWheels::bring(const WantedWheel& wheel, const std::string& library) {
  return bring(wheel, Depth::libraries, [&](const std::vector<std::string>& names) {
    return contains(names, library, base_name);
  });
}

Brought RequiredWheels::bring_module(const WantedWheel& wheel, const std::string& module) {
  return bring(wheel, Depth::files,
               [&](const std::vector<std::string>& names) { return has_module(names, module); });
}

Brought RequiredWheels::bring(const WantedWheel& wheel, Depth depth,
                              const OtherModules::IsWanted& is_it) {
  const auto all_known = walk(wheel, depth, [&](const Requirement&, const Chosen& chosen) {
    return is_it(chosen.files.names);
  });
  return !all_known ? Brought::yes : *all_known ? Brought::no : Brought::unknown;
}

std::optional<bool> RequiredWheels::walk(const WantedWheel& wheel, Depth depth,
                                         const Visit& visit) {
  constexpr std::size_t most = 60;  // wheels to look into
  std::deque<std::vector<Requirement>> waiting{
      requirements_here(wheel.claims.requires_dist, environment_, wheel.extras)};
  std::set<std::string> seen{canonical_name(wheel.claims.name)};
  bool all_known = true;
  for (; !waiting.empty(); waiting.pop_front()) {
    for (const auto& requirement : waiting.front()) {
      const auto name = canonical_name(requirement.name);
      if (!seen.insert(name).second) continue;
      if (seen.size() > most) return false;
      const auto& chosen = choose(name, requirement.specifiers, depth);
      all_known &= chosen.known;
      if (visit(requirement, chosen)) return std::nullopt;
      waiting.push_back(requirements_here(chosen.requires_dist, environment_, requirement.extras));
    }
  }
  return all_known;
}

std::string RequiredWheels::unmet(const WantedWheel& wheel) {
  auto all = requirements_here(wheel.claims.requires_dist, environment_, wheel.extras);
  std::erase_if(all, [&](const Requirement& one) {
    return !one.url.empty() || canonical_name(one.name) == canonical_name(wheel.claims.name);
  });
  for (const auto& one : all) {
    if (const auto name = canonical_name(one.name); !has_here(name))
      expect_candidates(index_, name);
  }
  for (const auto& one : all) {
    if (choose(canonical_name(one.name), one.specifiers, Depth::version).is_none)
      return one.name + one.specifiers;
  }
  return {};
}

Reason RequiredWheels::conflict(const WantedWheel& wheel) {
  const auto own_name = canonical_name(wheel.claims.name);
  std::map<std::string, std::string> versions{{own_name, wheel.claims.version}}, specifiers;
  std::vector<std::pair<std::string, Requirement>> required;  // who requires what
  auto add = [&](const Requirement& one) {
    add_specifiers(specifiers[canonical_name(one.name)], one);
  };
  for (const auto& one : requirements_here(wheel.claims.requires_dist, environment_, wheel.extras))
    add(one);
  walk(wheel, Depth::requirements, [&](const Requirement& requirement, const Chosen& one) {
    versions[canonical_name(requirement.name)] = one.version;
    for (auto& further : requirements_here(one.requires_dist, environment_, requirement.extras)) {
      add(further);
      required.emplace_back(requirement.name + " " + one.version, std::move(further));
    }
    return false;
  });
  for (const auto& [who, requirement] : required) {
    const auto name = canonical_name(requirement.name);
    const auto chosen = versions.find(name);
    // An installed version is replaced by the newest that fulfils all.
    auto is_replaced = [&] {
      return name != own_name && installed_.contains(name) &&
             !choose(name, specifiers[name], Depth::version).version.empty();
    };
    if (chosen != versions.end() && !chosen->second.empty() &&
        fulfils(chosen->second, requirement.specifiers) == false && !is_replaced())
      return {.why = Why::versions_conflict,
              .who = who,
              .what = requirement.name + requirement.specifiers,
              .here = chosen->second};
  }
  return {};
}

Reason RequiredWheels::numpy_clash(const WantedWheel& wheel) {
  const auto here = installed_.find("numpy");
  if (here == installed_.end()) return {};
  Reason clash;
  const auto all_known =
      walk(wheel, Depth::numpy, [&](const Requirement& requirement, const Chosen& chosen) {
        if (!clash) clash = chosen.numpy_clash;
        return canonical_name(requirement.name) == "numpy" &&
               fulfils(here->second.version, requirement.specifiers) == false;
      });
  return all_known ? clash : Reason();  // else an installer would replace this NumPy
}

std::optional<const WheelFiles*> RequiredWheels::first_with(const WantedWheel& wheel,
                                                            const std::string& module) {
  const WheelFiles* found = nullptr;
  const auto all_known = walk(wheel, Depth::files, [&](const Requirement&, const Chosen& chosen) {
    if (has_module(chosen.files.names, module)) found = &chosen.files;
    return found != nullptr;
  });
  return found || *all_known ? std::optional(found) : std::nullopt;
}

std::vector<WheelFiles> RequiredWheels::files_of(const WantedWheel& wheel,
                                                 const OtherModules::IsWanted& is_wanted) {
  std::vector<WheelFiles> found;
  walk(wheel, Depth::files, [&](const Requirement&, const Chosen& chosen) {
    if (is_wanted(chosen.files.names)) found.push_back(chosen.files);
    return false;
  });
  return found;
}

std::vector<MetNumpy> RequiredWheels::numpy_met_by(const WantedWheel& wheel) {
  std::optional<std::string> own;  // what the wheel itself asks of NumPy
  for (const auto& one : requirements_here(wheel.claims.requires_dist, environment_, wheel.extras))
    if (canonical_name(one.name) == "numpy") add_specifiers(own.emplace(own.value_or("")), one);
  auto all = own.value_or("");
  std::vector<std::pair<std::string, Requirement>> others;  // who asks for what
  const auto all_known =
      walk(wheel, Depth::requirements, [&](const Requirement& requirement, const Chosen& chosen) {
        for (auto& one :
             requirements_here(chosen.requires_dist, environment_, requirement.extras)) {
          if (canonical_name(one.name) != "numpy") continue;
          add_specifiers(all, one);
          others.emplace_back(requirement.name + " " + chosen.version, std::move(one));
        }
        return false;
      });
  std::string first;  // without what the others ask for
  std::vector<MetNumpy> met;
  if (own) {
    const auto& chosen = choose("numpy", *own, Depth::version);
    if (!chosen.known) return {};
    met.push_back({first = chosen.version});
  } else if (const auto here = installed_.find("numpy"); here != installed_.end()) {
    first = here->second.version;
  }
  if (others.empty()) return own || !*all_known ? met : std::vector<MetNumpy>{{first}};
  const auto& chosen = choose("numpy", all, Depth::version);
  if (!chosen.known || (own && chosen.version == first)) return met;
  const auto other = std::ranges::find_if(others, [&](const auto& one) {
    return !first.empty() && fulfils(first, one.second.specifiers) == false;
  });
  met.push_back({chosen.version, other == others.end() ? "" : other->first});
  return met;
}

const RequiredWheels::Chosen& RequiredWheels::choose(const std::string& name,
                                                     const std::string& specifiers, Depth depth) {
  const auto key = std::tuple(name, specifiers, depth);
  const auto found = known_.find(key);
  return found != known_.end()
             ? found->second
             : known_.emplace(key, look_up(name, specifiers, depth)).first->second;
}

RequiredWheels::Chosen RequiredWheels::look_up(const std::string& name,
                                               const std::string& specifiers, Depth depth) {
  if (const auto here = installed_.find(name);
      here != installed_.end() && fulfils(here->second.version, specifiers) != false) {
    return {.version = here->second.version,
            .requires_dist = claims_of(here->second).requires_dist,
            .files = installed_files(here->second),
            .known = true};
  }
  std::vector<std::string> notes;
  const auto found = find_candidates(index_, parse_requirement(name + specifiers), notes);
  if (!found) return {};
  const Candidate* best = nullptr;
  const auto& tags = machine_.python->tags;
  for (const auto& candidate : found->wheels) {
    if (best && best->version != candidate.version) break;
    if (fit_by_name(candidate.claims, candidate.file.name, machine_).fits == Fits::works &&
        (!best || rank_of(candidate.claims, tags) < rank_of(best->claims, tags)))
      best = &candidate;
  }
  if (!best) return {.is_none = notes.empty() && found->sdist.empty()};
  Chosen chosen{.version = best->claims.version, .known = true};
  if (depth == Depth::version) return chosen;
  WheelClaims claims;
  const auto metadata = read_metadata(index_.http, index_.cache, best->file).value_or("");
  parse_metadata(metadata, claims);
  chosen.requires_dist = std::move(claims.requires_dist);
  if (depth == Depth::requirements) return chosen;
  if (depth == Depth::numpy) {
    if (!requires_project(chosen.requires_dist, "numpy") && name != "numpy" &&
        !is_pure(best->claims))
      chosen.numpy_clash = numpy_clash_of(*best);
    return chosen;
  }
  if (depth == Depth::libraries && is_pure(best->claims)) return chosen;
  auto files = [&]() -> Result<WheelFiles> {
    const auto remote = std::make_shared<const Remote>(
        TRY(Remote::open(index_.http, index_.cache, on_its_server(best->file))));
    return files_of_wheel(remote->bytes(), remote);
  }();
  chosen.known = files.has_value() && !metadata.empty();
  if (files) chosen.files = std::move(*files);
  return chosen;
}

Reason RequiredWheels::numpy_clash_of(const Candidate& wheel) const {
  const auto read = read_remote_wheel(index_.http, index_.cache, on_its_server(wheel.file),
                                      wheel.file.name, {}, {.numpy = true});
  const auto& here = installed_.at("numpy").version;
  for (const auto& library : read ? read->item.facts.libraries : std::vector<LibraryFacts>()) {
    if (!library.numpy || library.machine != machine_.architecture) continue;
    if (auto why = why_not_numpy(*library.numpy, here); why != Why::none)
      return {.why = why, .who = library.path, .version = library.numpy->min, .here = here};
  }
  return {};
}

std::string cuda_of_torch(const WheelClaims& torch, const MachineFacts& machine) {
  const auto local = torch.version.find('+');
  if (local != torch.version.npos) {
    const auto label = torch.version.substr(local + 1);
    if (!label.starts_with("cu") || label.size() < 4) return {};
    return label.substr(2, label.size() - 3) + "." + label.back();
  }
  const auto environment = linux_environment(machine.python->minor(), machine.architecture);
  for (const auto& requirement : requirements_here(torch.requires_dist, environment)) {
    const auto name = canonical_name(requirement.name);
    if (!name.starts_with("nvidia-cuda-runtime") && name != "cuda-toolkit") continue;
    const auto specifiers = parse_specifiers(requirement.specifiers);
    if (!specifiers || specifiers->empty()) continue;
    return minor_of(specifiers->front().bound);
  }
  return {};
}

Result<std::string> cuda_of_torch(PackageIndex& index, Candidate torch,
                                  const MachineFacts& machine) {
  torch.file.has_metadata = true;  // mirrors have it without saying so, and the archive is large
  parse_metadata(TRY(read_metadata(index.http, index.cache, torch.file)), torch.claims);
  return cuda_of_torch(torch.claims, machine);
}

Result<TorchFacts> TorchLookup::find(const std::string& version) {
  const std::scoped_lock lock(mutex_);
  const auto known = known_.find(version);
  return known != known_.end() ? known->second
                               : known_.emplace(version, look_up(version)).first->second;
}

void TorchLookup::expect() {
  std::call_once(expected_, [&] { expect_candidates(index_, "torch"); });
}

// Asks the index which file of torch this machine would take, and reads what that file requires.
Result<TorchFacts> TorchLookup::look_up(const std::string& version) {
  TorchFacts torch{.version = version, .cuda = cuda_of_torch({.version = version}, machine_)};
  if (version.find('+') == version.npos) {
    std::vector<std::string> notes;
    const auto found = TRY(find_candidates(index_, parse_requirement("torch==" + version), notes));
    const auto fitting = std::ranges::find_if(found.wheels, [&](const Candidate& one) {
      return fit_by_name(one.claims, one.file.name, machine_).fits == Fits::works;
    });
    if (fitting == found.wheels.end())
      return fail(0, "the index has no torch " + version + " for this machine");
    torch.cuda = TRY(cuda_of_torch(index_, *fitting, machine_));
  }
  return torch;
}

}  // namespace wheelscope
