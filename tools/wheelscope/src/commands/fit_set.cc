// Connects the resolver with an index and with the judge of bytes, and explains the answer.
#include "commands/fitter.h"

#include <algorithm>
#include <iterator>

#include "commands/package_set.h"
#include "machine/distributions.h"
#include "report/json.h"
#include "report/text.h"
#include "text/text.h"

namespace wheelscope {
namespace {

using resolver::Clash;
using resolver::Conflict;
using resolver::Solution;
using resolver::VersionSet;

class SetFitter {
 public:
  SetFitter(const Options& options, MachineFacts machine, PipSettings from)
      : options_(options),
        machine_(std::move(machine)),
        index_{std::move(from), Http(options.timeout), Cache(cache_folder())},
        universe_(index_, machine_),
        judge_(universe_, index_, machine_, options.machine.empty(),
               options.machine.empty() ? lookups_on(machine_, disk_, false) : Lookups(),
               {.cuda = options.cuda, .deep = options.deep}) {
    if (options.keep) {
      for (const auto& one : list_distributions(machine_.python->site_packages))
        installed_[one.name] = one.version;
    }
  }

  Result<SetAnswer> answer(const std::vector<std::string>& asked) {
    SetAnswer answer{.asked = asked};
    TRY_VOID(universe_.ask(asked));
    const auto found = solve();
    answer.refused = lines_of(refused_);
    if (found) {
      answer.found = true;
      answer.packages = chosen(*found);
      answer.command = command(*found);
      if (!options_.why.empty()) TRY_VOID(explain(canonical_name(options_.why), *found, answer));
    } else {
      answer.conflict = lines_of(found.error());
      find_nearest(found.error(), answer);
    }
    if (!machine_.gpus.empty() && !options_.deep)
      answer.notes.push_back(
          "whether there is code for the GPUs here was not looked at: --deep tells");
    answer.read = judge_.read();
    answer.size = judge_.size();
    answer.received = index_.http.received();
    return answer;
  }

  const std::vector<Error>& problems() const { return universe_.problems(); }

 private:
  // Avoids doubts and sources if possible, and accepts them if nothing else is left.
  std::expected<Solution, Conflict> solve() {
    auto found = search(true);
    const bool could_take_less = judge_.had_doubts() || universe_.left_sources();
    return found || !could_take_less ? found : search(false);
  }

  std::expected<Solution, Conflict> search(bool avoid_doubts) {
    refused_.clear();
    judge_.avoid_doubts(avoid_doubts);
    universe_.take_sources(!avoid_doubts);
    resolver::Questions questions{
        .count_versions = [&](const std::string& name) { return universe_.count_versions(name); },
        .needs = [&](const std::string& name,
                     std::size_t version) { return universe_.needs(name, version); },
        .choose = [&](const std::string& name,
                      const VersionSet& of) { return preferred(name, of); },
        .check =
            [&](const Solution& solution) {
              auto clashes = judge_.check(solution);
              refused_.insert(refused_.end(), clashes.begin(), clashes.end());
              return clashes;
            }};
    return resolver::solve(questions);
  }

  std::size_t preferred(const std::string& package, const VersionSet& of) {
    const auto here = installed_.find(PackageUniverse::project_of(package));
    if (here != installed_.end()) {
      const auto version = parse_version(here->second);
      const auto& releases = universe_.project(package).releases;
      for (std::size_t i = 0; version && i < releases.size(); ++i) {
        if (of.contains(i) && releases[i].version == *version) return i;
      }
    }
    return of.first();
  }

  bool is_asked(const std::string& name) const { return contains(universe_.names(), name); }

  std::vector<ChosenPackage> chosen(const Solution& solution) {
    std::map<std::string, std::vector<std::string>> users;
    for (const auto& [package, version] : solution) {
      const auto& release = universe_.release(package, version);
      if (!release.wheel || !universe_.claims(package, version)) continue;
      const auto extra = PackageUniverse::extra_of(package);
      for (const auto& one : universe_.requirements(*universe_.claims(package, version), extra)) {
        const auto who = PackageUniverse::project_of(package) + " " + release.spelled + ": " +
                         one.name + one.specifiers;
        auto& list = users[canonical_name(one.name)];
        if (!contains(list, who)) list.push_back(who);
      }
    }
    std::vector<ChosenPackage> packages;
    for (const auto& [name, version] : solution) {
      if (!PackageUniverse::extra_of(name).empty()) continue;
      const auto& release = universe_.release(name, version);
      const auto& newest = universe_.release(name, 0).spelled;
      auto judged = judge_.judged(name, solution, is_asked(name));
      ChosenPackage one{.name = name,
                        .version = release.spelled,
                        .asked = is_asked(name),
                        .is_source = !release.wheel,
                        .by_bytes = judged.by_bytes,
                        .judged = std::move(judged.verdict),
                        .newest = version == 0 ? "" : newest,
                        .required_by = users[name]};
      if (release.wheel || release.sdist) {
        const auto& file = release.wheel ? release.wheel->file : *release.sdist;
        one.file = file.name;
        one.url = file.url;
        one.sha256 = file.sha256;
        one.size = file.size;
      }
      packages.push_back(std::move(one));
    }
    std::ranges::stable_sort(packages, [&](const ChosenPackage& a, const ChosenPackage& b) {
      auto place = [&](const ChosenPackage& one) {
        return std::ranges::find(universe_.names(), one.name) - universe_.names().begin();
      };
      return place(a) < place(b);
    });
    return packages;
  }

  // Builds an install command that names everything asked for, and packages of which an installer
  // would choose another version.
  std::string command(const Solution& solution) {
    auto names = universe_.names();
    for (const auto& clash : refused_) {
      for (const auto& term : clash.terms) {
        if (solution.contains(term.package) && !contains(names, term.package))
          names.push_back(term.package);
      }
    }
    auto text = pip_install(options_, machine_);
    for (const auto& name : names) {
      if (solution.contains(name))
        text += " " + shell_word(universe_.to_install(name, solution.at(name)));
    }
    return text + index_words(options_);
  }

  // Makes one line for all versions of a package for which the same is true.
  std::vector<ClashLine> lines_of(const std::vector<Clash>& clashes) {
    struct Group {
      std::string who, other;
      VersionSet versions, other_versions;
      std::vector<std::string> texts;
      ClashReason because;
    };
    std::vector<Group> groups;
    for (const auto& clash : clashes) {
      const auto& first = clash.terms.front();
      const auto& because = universe_.reason(clash.reason);
      const auto other = clash.terms.size() > 1 ? clash.terms[1].package : "";
      const auto other_versions = clash.terms.size() > 1 ? clash.terms[1].values : VersionSet(0);
      const bool is_requirement = because.kind == ClashReason::Kind::required;
      const auto same = std::ranges::find_if(groups, [&](const Group& group) {
        return group.who == first.package && group.other == other &&
               group.because.kind == because.kind &&
               (is_requirement || (group.because.text == because.text &&
                                   group.because.reason.why == because.reason.why &&
                                   group.other_versions == other_versions));
      });
      if (same == groups.end()) {
        groups.push_back(
            {first.package, other, first.values, other_versions, {because.text}, because});
        continue;
      }
      same->versions = same->versions | first.values;
      same->other_versions = same->other_versions & other_versions;
      if (!contains(same->texts, because.text)) same->texts.push_back(because.text);
    }
    std::vector<ClashLine> lines;
    for (auto& [who, other, versions, other_versions, texts, because] : groups) {
      const bool is_root = who == resolver::root;
      if (because.kind == ClashReason::Kind::required && texts.size() > 2) {
        const auto allowed = universe_.spelled(other, ~other_versions);
        because.text = other + (allowed.empty() ? " in versions that do not exist" : " " + allowed);
      }
      lines.push_back(
          {.who = who,
           .versions = is_root ? "" : universe_.spelled(who, versions),
           .other = other,
           .other_versions = other.empty() ? "" : universe_.spelled(other, other_versions),
           .because = because});
      const bool is_need =
          because.kind == ClashReason::Kind::asked || because.kind == ClashReason::Kind::required;
      if (!is_need || other.empty()) continue;
      const auto versions_of_other = universe_.count_versions(other);
      if (versions_of_other == 0)
        lines.back().because.reason = {.why = Why::not_read,
                                       .what = universe_.project(other).problem};
      else if ((~other_versions).empty())
        lines.back().because.reason = {
            .why = Why::not_read,
            .what = "there is no such version, only " +
                    universe_.spelled(other, VersionSet(versions_of_other, true))};
    }
    return lines;
  }

  // Finds solutions where one of the conflicting requirements is relaxed or left out.
  void find_nearest(const Conflict& conflict, SetAnswer& answer) {
    std::vector<std::size_t> involved;
    for (std::size_t i = answer.asked.size(); i-- > 0;) {
      const auto name = canonical_name(parse_requirement(answer.asked[i]).name);
      for (const auto& clash : conflict) {
        if (clash.terms.front().package != resolver::root || clash.terms.size() < 2) continue;
        if (PackageUniverse::project_of(clash.terms[1].package) != name) continue;
        involved.push_back(i);
        break;
      }
    }
    for (const bool left_out : {false, true}) {
      for (const auto i : involved) {
        auto asked = answer.asked;
        const auto name = parse_requirement(asked[i]).name;
        if (left_out)
          asked.erase(asked.begin() + static_cast<std::ptrdiff_t>(i));
        else if (asked[i] == name)
          continue;
        else
          asked[i] = name;
        if (asked.empty() || !universe_.ask(asked)) continue;
        if (const auto found = solve()) {
          answer.nearest_asked = std::move(asked);
          answer.nearest = chosen(*found);
          return;
        }
      }
    }
  }

  // Explains who requires a package, and what rules out its newest version.
  Result<bool> explain(const std::string& name, const Solution& solution, SetAnswer& answer) {
    const auto found = std::ranges::find(answer.packages, name, &ChosenPackage::name);
    if (found == answer.packages.end()) {
      answer.why.push_back(name + " is not in the set: nothing requires it");
      return true;
    }
    if (found->asked) answer.why.push_back("you ask for it");
    for (const auto& user : found->required_by) answer.why.push_back(user);
    if (found->newest.empty()) {
      answer.why.push_back(found->version + " is the newest version");
      return true;
    }
    auto asked = answer.asked;
    asked.push_back(name + "==" + found->newest);
    TRY_VOID(universe_.ask(asked));
    const auto other = solve();
    if (!other) {
      answer.why.push_back(name + " " + found->newest + " is the newest version, but:");
      for (const auto& line : lines_of(other.error()))
        answer.why.push_back("  " + clash_text(line));
      return true;
    }
    std::vector<std::string> changes;
    for (const auto& [package, version] : *other) {
      const auto here = solution.find(package);
      if (package != name && here != solution.end() && here->second != version)
        changes.push_back(package + " " + universe_.release(package, version).spelled);
    }
    answer.why.push_back(name + " " + found->newest + " could be had" +
                         (changes.empty() ? "" : " with " + joined(changes)));
    return true;
  }

  const Options& options_;
  MachineFacts machine_;
  PackageIndex index_;
  Disk disk_;
  PackageUniverse universe_;
  SetJudge judge_;
  std::map<std::string, std::string> installed_;
  std::vector<Clash> refused_;
};

}  // namespace

bool asks_for_set(const Options& options) {
  const auto projects = std::ranges::count_if(options.paths, [](const std::string& asked) {
    return !is_url(asked) && !asked.ends_with(".whl");
  });
  return (projects > 0 && options.paths.size() > 1) || options.keep || !options.why.empty() ||
         !options.format.empty() || !options.cuda.empty();
}

int fit_set(const Options& options, Streams streams, MachineFacts machine, PipSettings from) {
  auto asked = options.paths;
  if (!options.with.empty()) asked.push_back(options.with);
  const auto python = *machine.python;
  const auto architecture = machine.architecture;
  SetFitter fitter(options, std::move(machine), std::move(from));
  const auto answer = fitter.answer(asked);
  if (!answer) return complain(answer.error(), streams);
  if (options.format == "pylock" && answer->found) {
    const auto lock = pylock_text(*answer, python, architecture);
    if (!lock) return complain(lock.error(), streams);
    streams.out << *lock;
  } else if (options.json) {
    streams.out << json_document("fit_set", to_json(*answer));
  } else {
    (options.format == "pylock" ? streams.err : streams.out)
        << fit_set_text(*answer, options.style);
  }
  const bool works = answer->found && std::ranges::all_of(answer->packages, [](const auto& one) {
                       return one.judged.fits == Fits::works;
                     });
  for (const auto& problem : fitter.problems()) complain(problem, streams);
  if (works) return clean;
  return answer->found || fitter.problems().empty() ? has_findings : unreadable;
}

}  // namespace wheelscope
