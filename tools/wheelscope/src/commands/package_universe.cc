// Lists projects and reads metadata when the resolver needs them, and requests ahead what it will
// need next.
#include "commands/package_set.h"

#include <algorithm>

#include "answers/fit.h"
#include "commands/remote_wheel.h"
#include "packaging/claims.h"
#include "source/source.h"
#include "text/text.h"

namespace wheelscope {

using resolver::Clash;
using resolver::VersionSet;

namespace {

// Returns the specifiers of a requirement that an installer understands; nothing if it is broken.
std::optional<std::vector<Specifier>> specifiers_of(const Requirement& requirement) {
  return !is_project_name(requirement.name) ? std::nullopt
                                            : parse_specifiers(requirement.specifiers);
}

std::string written(const Requirement& requirement) {
  auto text = requirement.name;
  if (!requirement.extras.empty()) text += "[" + joined(requirement.extras, ",") + "]";
  return text + requirement.specifiers;
}

}  // namespace

PackageUniverse::PackageUniverse(PackageIndex& index, const MachineFacts& machine)
    : index_(index),
      machine_(machine),
      environment_(linux_environment(machine.python->version, machine.architecture)) {
  for (const auto& tag : machine.python->tags) ranks_.emplace(tag, ranks_.size());
}

std::string PackageUniverse::project_of(const std::string& package) {
  return package.substr(0, package.find('['));
}

std::string PackageUniverse::extra_of(const std::string& package) {
  const auto bracket = package.find('[');
  return bracket == package.npos ? "" : package.substr(bracket + 1, package.size() - bracket - 2);
}

Result<bool> PackageUniverse::ask(const std::vector<std::string>& asked) {
  asked_.clear();
  names_.clear();
  for (const auto& text : asked) {
    auto requirement = parse_requirement(text);
    auto address = requirement.url;
    if (is_url(text) || (text.ends_with(".whl") && address.empty())) address = text;
    if (!address.empty()) {
      const auto plain = address.substr(0, address.find('#'));
      IndexFile file{.name = base_name(is_url(plain) ? shown_url(plain) : plain),
                     .url = is_url(plain) ? plain : local_file + local_path(plain)};
      if (const auto hash = address.find("#sha256="); hash != address.npos)
        file.sha256 = lower(address.substr(hash + 8));
      const auto name = parse_wheel_name(file.name);
      if (!name) return fail(0, "'" + text + "' is no wheel: " + name.error().what);
      requirement = {.name = canonical_name(name->name), .extras = requirement.extras};
      given_[requirement.name] = std::move(file);
    }
    const auto specifiers = specifiers_of(requirement);
    if (!specifiers) return fail(0, "'" + text + "' is no requirement, wheel or address");
    if (holds(requirement.marker, environment_) == false) continue;
    const auto name = canonical_name(requirement.name);
    if (names_version(*specifiers)) may_be_withdrawn_.insert(name);
    if (names_prerelease(*specifiers)) may_be_prerelease_.insert(name);
    if (!contains(names_, name)) names_.push_back(name);
    requirement.marker.clear();
    asked_.push_back(std::move(requirement));
  }
  return true;
}

void PackageUniverse::add_file(IndexFile file, const std::string& name,
                               std::map<Version, Release>& found) {
  if (file.yanked && !may_be_withdrawn_.contains(name)) return;
  if (const auto version = version_of_sdist(file.name)) {
    auto& release = found[*version];
    release.version = *version;
    if (release.spelled.empty()) release.spelled = to_string(*version);
    if (file.requires_python.empty() ||
        fulfils(machine_.python->version, file.requires_python) != false)
      release.sdist = std::move(file);
    else if (!release.reason)
      release.reason = {.why = Why::python_required, .what = file.requires_python};
    return;
  }
  auto wheel = wheel_of(file, name);
  if (!wheel) return;
  auto& release = found[wheel->version];
  release.version = wheel->version;
  release.spelled = wheel->claims.version;
  auto rank = [&](const WheelClaims& wheel) {
    auto best = ranks_.size();
    for (const auto& tag : wheel.file_name_tags) {
      if (const auto known = ranks_.find(tag); known != ranks_.end())
        best = std::min(best, known->second);
    }
    return best;
  };
  const auto own_rank = rank(wheel->claims);
  if (release.wheel && own_rank >= rank(release.wheel->claims)) return;
  const bool has_tag = own_rank < ranks_.size();
  if (!has_tag && release.reason) return;
  auto by_name = fit_by_name(wheel->claims, file.name, machine_);
  if (has_tag && by_name.fits == Fits::works)
    release.wheel = std::move(wheel);
  else
    release.reason = std::move(by_name.reason);
}

Project PackageUniverse::list(const std::string& name) {
  std::map<Version, Release> found;
  Project project;
  if (const auto given = given_.find(name); given != given_.end()) {
    add_file(given->second, name, found);
  } else {
    std::vector<std::string> notes;
    auto files = find_files(index_, name, notes);
    if (!files) problems_.push_back(files.error());
    if (!files) project.problem = files.error().what;
    for (auto& file : files ? *files : std::vector<IndexFile>())
      add_file(std::move(file), name, found);
  }
  auto is_prerelease = [](const auto& entry) { return entry.first.is_prerelease(); };
  const bool all = index_.from.prereleases || may_be_prerelease_.contains(name) ||
                   given_.contains(name) || std::ranges::all_of(found, is_prerelease);
  for (auto& entry : found) {
    if (all || !is_prerelease(entry)) project.releases.push_back(std::move(entry.second));
  }
  std::ranges::reverse(project.releases);
  project.from_source =
      std::ranges::none_of(project.releases, [](const Release& one) { return !!one.wheel; });
  if (project.releases.empty() && project.problem.empty())
    project.problem = "the index has no file of " + name;
  return project;
}

const Project& PackageUniverse::project(const std::string& package) {
  const auto name = project_of(package);
  const auto found = projects_.find(name);
  return found != projects_.end() ? found->second
                                  : projects_.emplace(name, list(name)).first->second;
}

const Result<WheelClaims>& PackageUniverse::claims(const std::string& package,
                                                   std::size_t version) {
  const auto key = std::pair(project_of(package), version);
  if (const auto found = claims_.find(key); found != claims_.end()) return found->second;
  const auto& wheel = release(package, version).wheel;
  auto read = [&]() -> Result<WheelClaims> {
    auto claims = wheel->claims;
    parse_metadata(TRY(read_metadata(index_.http, index_.cache, wheel->file)), claims);
    return claims;
  };
  const auto& claims = claims_.emplace(key, read()).first->second;
  if (!claims) problems_.push_back(claims.error());
  return claims;
}

void PackageUniverse::expect_metadata(const std::string& package, const VersionSet& versions,
                                      std::size_t most) {
  for (std::size_t i = 0; i < versions.versions() && most > 0; ++i) {
    const auto& wheel = release(package, i).wheel;
    if (!versions.contains(i) || !wheel) continue;
    --most;
    if (!claims_.contains({project_of(package), i}) && expected_.insert(wheel->file.url).second)
      expect_metadata_of(index_.http, index_.cache, wheel->file);
  }
}

std::vector<Requirement> PackageUniverse::requirements(const WheelClaims& claims,
                                                       const std::string& extra) const {
  return requirements_here(claims.requires_dist, environment_, {extra});
}

std::string PackageUniverse::to_install(const std::string& project, std::size_t version) {
  std::vector<std::string> extras;
  for (const auto& one : asked_) {
    if (canonical_name(one.name) == project)
      extras.insert(extras.end(), one.extras.begin(), one.extras.end());
  }
  auto text = project;
  if (!extras.empty()) text += "[" + joined(extras, ",") + "]";
  const auto given = given_.find(project);
  if (given == given_.end()) return text + "==" + release(project, version).spelled;
  const auto& url = given->second.url;
  if (extras.empty()) return url.starts_with(local_file) ? url.substr(local_file.size()) : url;
  return text + " @ " + url;
}

VersionSet PackageUniverse::allowed(const std::string& package, const std::string& specifiers) {
  const auto& releases = project(package).releases;
  const auto clauses = parse_specifiers(specifiers);
  VersionSet set(releases.size());
  for (std::size_t i = 0; i < releases.size(); ++i) {
    if (clauses && fulfils(releases[i].version, *clauses)) set.add(i);
  }
  return set;
}

// Returns a text such as "1.0, 2.1 to 2.4", oldest first.
std::string PackageUniverse::spelled(const std::string& package, const VersionSet& versions) {
  std::vector<std::string> runs;
  for (auto i = versions.versions(); i-- > 0;) {
    if (!versions.contains(i)) continue;
    auto last = i;
    while (last > 0 && versions.contains(last - 1)) --last;
    runs.push_back(release(package, i).spelled +
                   (last < i ? " to " + release(package, last).spelled : ""));
    i = last;
  }
  return joined(runs);
}

std::size_t PackageUniverse::because(ClashReason reason) {
  reasons_.push_back(std::move(reason));
  return reasons_.size() - 1;
}

void PackageUniverse::add_needs(const std::vector<Requirement>& requirements,
                                const std::string& package, const VersionSet& version,
                                ClashReason::Kind kind, std::vector<Clash>& clashes) {
  for (const auto& requirement : requirements) {
    const auto name = canonical_name(requirement.name);
    if (!projects_.contains(name) && !given_.contains(name) && expected_.insert(name).second)
      expect_candidates(index_, name);
  }
  for (const auto& requirement : requirements) {
    const auto name = canonical_name(requirement.name);
    auto set = allowed(name, requirement.specifiers);
    if (!requirement.url.empty() && !given_.contains(name)) set = VersionSet(set.versions());
    expect_metadata(name, set);
    const auto number = because({.kind = kind, .text = written(requirement)});
    clashes.push_back(resolver::requirement(package, version, name, set, number));
    for (const auto& extra : requirement.extras)
      clashes.push_back(resolver::requirement(
          package, version, name + "[" + canonical_name(extra) + "]", set, number));
  }
}

// Rules out, at once, all versions that lack a file for the same reason.
std::vector<Clash> PackageUniverse::unavailable(const std::string& package, std::size_t version) {
  const auto& releases = project(package).releases;
  VersionSet set(releases.size());
  for (std::size_t i = 0; i < releases.size(); ++i) {
    if (!releases[i].wheel && releases[i].reason == releases[version].reason) set.add(i);
  }
  ClashReason why{.kind = ClashReason::Kind::unavailable, .reason = releases[version].reason};
  if (!why.reason) why.reason.why = Why::only_sources;
  return {{{{package, set}}, because(std::move(why))}};
}

std::vector<Clash> PackageUniverse::needs(const std::string& package, std::size_t version) {
  std::vector<Clash> clashes;
  if (package == resolver::root) {
    add_needs(asked_, package, VersionSet(1).add(0), ClashReason::Kind::asked, clashes);
    return clashes;
  }
  const auto set = VersionSet(count_versions(package)).add(version);
  const auto extra = extra_of(package);
  if (!extra.empty())
    clashes.push_back(resolver::requirement(package, set, project_of(package), set,
                                            because({.text = project_of(package)})));
  const auto& release = project(package).releases[version];
  if (!release.wheel) {
    const bool sources = project(package).from_source && release.sdist;
    if (sources && take_sources_) return clashes;  // what it needs is unknown
    left_sources_ |= sources;
    return unavailable(package, version);
  }
  auto rule_out = [&](ClashReason why) {
    why.kind = ClashReason::Kind::unavailable;
    return std::vector<Clash>{{{{package, set}}, because(std::move(why))}};
  };
  const auto& known = claims(package, version);
  if (!known) return rule_out({.text = known.error().what});
  if (fulfils(machine_.python->version, known->requires_python) == false)
    return rule_out({.reason = {.why = Why::python_required, .what = known->requires_python}});
  const auto required = requirements(*known, extra);
  for (const auto& requirement : required) {
    if (!specifiers_of(requirement))
      return rule_out(
          {.text = "requires '" + written(requirement) + "', which nothing understands"});
  }
  add_needs(required, package, set, ClashReason::Kind::required, clashes);
  return clashes;
}

}  // namespace wheelscope
