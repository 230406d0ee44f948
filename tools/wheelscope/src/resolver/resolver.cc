// Searches by conflict-driven learning.
#include "resolver/resolver.h"

#include <algorithm>
#include <optional>
#include <set>

namespace wheelscope::resolver {
namespace {

class Search {
 public:
  explicit Search(const Questions& questions) : ask_(questions) {
    root_clash_ = store({.terms = {{number_of(root), VersionSet(1).add(1)}}});
  }

  // Returns the clash that rules out everything; nothing if there is a solution.
  std::optional<std::size_t> run() {
    (void)learn(root_clash_);
    while (true) {
      const auto package = next();
      if (!package) {
        auto clashes = ask_.check ? ask_.check(solution()) : std::vector<Clash>();
        if (clashes.empty()) return std::nullopt;
        if (!take(clashes)) return failed_;
        continue;
      }
      const auto domain = packages_[*package].domain;
      const auto version =
          ask_.choose ? ask_.choose(packages_[*package].name, domain) : domain.first();
      if (packages_[*package].asked.insert(version).second) {
        if (!take(ask_.needs(packages_[*package].name, version))) return failed_;
        continue;  // the new clashes may rule it out, or put another first
      }
      ++level_;
      packages_[*package].decided = true;
      assign(*package, VersionSet(domain.versions()).add(version), decision);
      if (!propagate({*package})) return failed_;
    }
  }

  Solution solution() const {
    Solution found;
    for (const auto& package : packages_) {
      if (package.decided && package.name != root) found[package.name] = package.domain.first();
    }
    return found;
  }

  // Returns the given clashes from which a clash was derived.
  std::vector<Clash> leaves(std::size_t clash) const {
    std::set<std::size_t> seen;
    std::vector<std::size_t> waiting{clash};
    std::vector<Clash> found;
    while (!waiting.empty()) {
      const auto one = waiting.back();
      waiting.pop_back();
      if (!seen.insert(one).second) continue;
      for (const auto parent : clashes_[one].parents) waiting.push_back(parent);
    }
    for (const auto one : seen) {
      if (const auto& given = clashes_[one].given) found.push_back(*given);
    }
    return found;
  }

 private:
  static constexpr std::size_t decision = -1;

  struct NumberedTerm {
    std::size_t package;
    VersionSet values;
  };
  struct StoredClash {
    std::vector<NumberedTerm> terms;
    std::vector<std::size_t> parents = {};
    std::optional<Clash> given = {};
  };
  struct Step {  // a decision or a derivation, in order
    std::size_t package, level, cause;
    VersionSet before, after;
  };
  struct Package {
    std::string name;
    VersionSet domain;
    bool decided = false;
    std::set<std::size_t> asked;       // versions whose needs are known
    std::vector<std::size_t> clashes;  // that name it
    std::vector<std::size_t> steps;    // that changed its domain
  };

  std::size_t number_of(const std::string& name) {
    const auto [found, is_new] = numbers_.try_emplace(name, packages_.size());
    if (is_new) {
      const auto versions = name == root ? 1 : ask_.count_versions(name);
      packages_.push_back({.name = name, .domain = VersionSet(versions, true)});
    }
    return found->second;
  }

  std::size_t store(StoredClash clash) {
    clashes_.push_back(std::move(clash));
    return clashes_.size() - 1;
  }

  // Checks a clash again whenever one of its packages changes.
  void watch(std::size_t clash) {
    for (const auto& term : clashes_[clash].terms) packages_[term.package].clashes.push_back(clash);
  }

  // Returns false if there is no solution with these.
  bool take(const std::vector<Clash>& clashes) {
    std::vector<std::size_t> stored;
    for (const auto& clash : clashes) {
      StoredClash one{.terms = {}, .parents = {}, .given = clash};
      for (const auto& term : clash.terms) {
        const auto number = number_of(term.package);
        if (!term.values.full()) one.terms.push_back({number, term.values});
      }
      stored.push_back(store(std::move(one)));
    }
    return std::ranges::all_of(stored, [&](std::size_t clash) { return learn(clash); });
  }

  bool learn(std::size_t clash) {
    watch(clash);
    std::set<std::size_t> changed;
    return apply(clash, changed) && propagate(std::move(changed));
  }

  void assign(std::size_t package, VersionSet values, std::size_t cause) {
    auto& one = packages_[package];
    one.steps.push_back(steps_.size());
    steps_.push_back({package, level_, cause, one.domain, values});
    one.domain = std::move(values);
  }

  // Derives what follows from a clash if all its terms but one are true.
  bool apply(std::size_t clash, std::set<std::size_t>& changed) {
    const NumberedTerm* open = nullptr;
    for (const auto& term : clashes_[clash].terms) {
      const auto& domain = packages_[term.package].domain;
      if (domain.is_within(term.values)) continue;
      if (open || !domain.meets(term.values)) return true;
      open = &term;
    }
    if (open) {
      const auto package = open->package;
      assign(package, packages_[package].domain & ~open->values, clash);
      changed.insert(package);
      return true;
    }
    const auto learnt = resolve(clash);
    if (!learnt) return false;
    changed.clear();
    return apply(*learnt, changed);
  }

  bool propagate(std::set<std::size_t> changed) {
    while (!changed.empty()) {
      const auto package = *changed.begin();
      changed.erase(changed.begin());
      // The newest first: they were learnt from conflicts. `clashes` may grow on the way.
      for (auto i = packages_[package].clashes.size(); i-- > 0;) {
        const auto steps = steps_.size();
        const auto clash = packages_[package].clashes[i];
        if (!apply(clash, changed)) return false;
        if (steps_.size() < steps) break;  // the search went back: `changed` says what to check
      }
    }
    return true;
  }

  // Returns the first step after which a term is true.
  std::size_t satisfier(const NumberedTerm& term) const {
    const auto& steps = packages_[term.package].steps;
    return *std::ranges::find_if(
        steps, [&](std::size_t step) { return steps_[step].after.is_within(term.values); });
  }

  // Traces a clash whose terms are all true to the decision that caused it, goes back to before
  // that decision, and returns the clash that rules it out. Returns nothing if no decision caused
  // it.
  std::optional<std::size_t> resolve(std::size_t clash) {
    const auto known = clash;
    while (!clashes_[clash].terms.empty()) {
      std::vector<std::size_t> satisfiers;
      for (const auto& term : clashes_[clash].terms) satisfiers.push_back(satisfier(term));
      std::ranges::sort(satisfiers);
      const auto& step = steps_[satisfiers.back()];
      const auto level_of_others =
          satisfiers.size() > 1 ? steps_[satisfiers.end()[-2]].level : std::size_t{0};
      if (step.cause == decision || level_of_others < step.level) {
        go_back(level_of_others);
        if (clash != known) watch(clash);
        return clash;
      }
      clash = store(combined(clash, step.cause, step.package));
    }
    failed_ = clash;
    return std::nullopt;
  }

  // Returns what two clashes imply together, whatever `package` is.
  StoredClash combined(std::size_t a, std::size_t b, std::size_t package) const {
    std::map<std::size_t, VersionSet> terms;
    for (const auto clash : {a, b}) {
      for (const auto& [number, values] : clashes_[clash].terms) {
        const auto [found, is_new] = terms.try_emplace(number, values);
        if (is_new) continue;
        found->second = number == package ? found->second | values : found->second & values;
      }
    }
    StoredClash result{.terms = {}, .parents = {a, b}};
    for (auto& [number, values] : terms) {
      if (!values.full()) result.terms.push_back({number, std::move(values)});
    }
    return result;
  }

  void go_back(std::size_t level) {
    level_ = level;
    while (!steps_.empty() && steps_.back().level > level) {
      auto& package = packages_[steps_.back().package];
      package.domain = std::move(steps_.back().before);
      package.steps.pop_back();
      if (steps_.back().cause == decision) package.decided = false;
      steps_.pop_back();
    }
  }

  // Returns the package to decide on: one that must be present. Packages with one version left come
  // first, then those that were named first.
  std::optional<std::size_t> next() const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < packages_.size(); ++i) {
      const auto& package = packages_[i];
      if (package.decided || package.domain.contains(package.domain.absent())) continue;
      if (package.domain.count() == 1) return i;
      if (!best) best = i;
    }
    return best;
  }

  const Questions& ask_;
  std::map<std::string, std::size_t> numbers_;
  std::vector<Package> packages_;
  std::vector<StoredClash> clashes_;
  std::vector<Step> steps_;
  std::size_t level_ = 0, root_clash_ = 0, failed_ = 0;
};

using Clashes = std::vector<Clash>;

// True if there is a solution when only these clashes are known.
bool has_solution(const Clashes& clashes) {
  std::map<std::string, std::size_t> versions;
  for (const auto& clash : clashes) {
    for (const auto& term : clash.terms) versions[term.package] = term.values.versions();
  }
  const Questions questions{
      .count_versions = [&](const std::string& package) { return versions.at(package); },
      .needs = [&](const std::string& package,
                   std::size_t) { return package == root ? clashes : Clashes(); }};
  return !Search(questions).run();
}

// Removes clashes that the conflict does not need, one pair of packages after another.
Conflict smallest(const Clashes& clashes) {
  std::map<std::set<std::string>, Clashes> groups;
  for (const auto& clash : clashes) {
    std::set<std::string> names;
    for (const auto& term : clash.terms) names.insert(term.package);
    groups[names].push_back(clash);
  }
  auto all_but = [&](const std::set<std::string>& left_out) {
    Clashes others;
    for (const auto& [names, group] : groups) {
      if (names != left_out) others.insert(others.end(), group.begin(), group.end());
    }
    return others;
  };
  for (auto group = groups.begin(); group != groups.end();)
    group = has_solution(all_but(group->first)) ? std::next(group) : groups.erase(group);
  return all_but({"\n"});
}

}  // namespace

std::expected<Solution, Conflict> solve(const Questions& questions) {
  Search search(questions);
  if (const auto clash = search.run()) return std::unexpected(smallest(search.leaves(*clash)));
  return search.solution();
}

Clash requirement(const std::string& package, const VersionSet& version, const std::string& other,
                  const VersionSet& allowed, std::size_t reason) {
  return {{{package, version}, {other, ~allowed}}, reason};
}

}  // namespace wheelscope::resolver
