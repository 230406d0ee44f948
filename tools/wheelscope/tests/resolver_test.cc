// Tests the resolver on an example of pub's solver.md, and on random universes beside a search that
// tries everything.
#include "resolver/resolver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace wheelscope::resolver {
namespace {

using Versions = std::vector<std::string>;  // newest first
// package -> version -> its requirements: package -> allowed versions
using Requires = std::map<std::string, Versions>;
struct Universe {
  std::map<std::string, Versions> packages;
  std::map<std::pair<std::string, std::string>, Requires> required;
  Requires asked;

  VersionSet set_of(const std::string& package, const Versions& allowed) const {
    const auto found = packages.find(package);
    const Versions none;
    const auto& all = found == packages.end() ? none : found->second;
    VersionSet set(all.size());
    for (const auto& one : allowed) {
      const auto at = std::ranges::find(all, one);
      if (at != all.end()) set.add(static_cast<std::size_t>(at - all.begin()));
    }
    return set;
  }

  Questions questions() const {
    return {.count_versions =
                [this](const std::string& package) {
                  const auto found = packages.find(package);
                  return found == packages.end() ? 0 : found->second.size();
                },
            .needs =
                [this](const std::string& package, std::size_t version) {
                  std::vector<Clash> clashes;
                  const auto& list =
                      package == root ? asked : find(package, packages.at(package)[version]);
                  const auto self = package == root
                                        ? VersionSet(1).add(0)
                                        : VersionSet(packages.at(package).size()).add(version);
                  for (const auto& [other, allowed] : list)
                    clashes.push_back(requirement(package, self, other, set_of(other, allowed), 0));
                  return clashes;
                }};
  }

  const Requires& find(const std::string& package, const std::string& version) const {
    static const Requires nothing;
    const auto found = required.find({package, version});
    return found == required.end() ? nothing : found->second;
  }

  // Returns the solution as text ("a 1.0, b 2.0"), or the packages of the conflict.
  std::string answer() const {
    std::string text;
    const auto found = solve(questions());
    if (found) {
      for (const auto& [package, version] : *found)
        text += (text.empty() ? "" : ", ") + package + " " + packages.at(package)[version];
      return text;
    }
    text = "no:";
    for (const auto& clash : found.error()) {
      text += " (";
      for (const auto& term : clash.terms)
        text += " " + (term.package.empty() ? "-" : term.package);
      text += " )";
    }
    return text;
  }
};

// https://github.com/dart-lang/pub/blob/master/doc/solver.md, "Examples"; test_packse.py has more.
TEST(Resolver, learns_where_a_package_is_narrowed_twice) {
  EXPECT_EQ((Universe{.packages = {{"foo", {"1.1.0", "1.0.0"}},
                                   {"left", {"1.0.0"}},
                                   {"right", {"1.0.0"}},
                                   {"shared", {"2.0.0", "1.0.0"}},
                                   {"target", {"2.0.0", "1.0.0"}}},
                      .required = {{{"foo", "1.1.0"}, {{"left", {"1.0.0"}}, {"right", {"1.0.0"}}}},
                                   {{"left", "1.0.0"}, {{"shared", {"2.0.0", "1.0.0"}}}},
                                   {{"right", "1.0.0"}, {{"shared", {"1.0.0"}}}},
                                   {{"shared", "1.0.0"}, {{"target", {"1.0.0"}}}}},
                      .asked = {{"foo", {"1.1.0", "1.0.0"}}, {"target", {"2.0.0"}}}})
                .answer(),
            "foo 1.0.0, target 2.0.0");
}

TEST(Resolver, says_why_there_is_none) {
  EXPECT_EQ((Universe{.packages = {{"foo", {"1.0.0"}},
                                   {"bar", {"2.0.0"}},
                                   {"baz", {"3.0.0", "1.0.0"}},
                                   {"idle", {"1.0.0"}}},
                      .required = {{{"foo", "1.0.0"}, {{"bar", {"2.0.0"}}, {"idle", {"1.0.0"}}}},
                                   {{"bar", "2.0.0"}, {{"baz", {"3.0.0"}}}}},
                      .asked = {{"foo", {"1.0.0"}}, {"baz", {"1.0.0"}}, {"idle", {"1.0.0"}}}})
                .answer(),
            "no: ( - baz ) ( - foo ) ( bar baz ) ( foo bar )");
}

TEST(Resolver, a_package_without_versions) {
  const Universe universe{.packages = {{"a", {"2", "1"}}},
                          .required = {{{"a", "2"}, {{"ghost", {"1"}}}}},
                          .asked = {{"a", {"2", "1"}}}};
  EXPECT_EQ(universe.answer(), "a 1");
  EXPECT_EQ((Universe{.asked = {{"ghost", {"1"}}}}).answer(), "no: ( - ghost )");
  EXPECT_EQ(Universe().answer(), "");
}

TEST(Resolver, a_solution_that_is_refused_is_not_found_again) {
  const Universe universe{.packages = {{"a", {"3", "2", "1"}}, {"b", {"2", "1"}}},
                          .asked = {{"a", {"3", "2", "1"}}, {"b", {"2", "1"}}}};
  auto questions = universe.questions();
  int asked = 0;
  questions.check = [&](const Solution& solution) {
    ++asked;
    std::vector<Clash> clashes;
    if (solution.at("a") < 2 && solution.at("b") == 0)  // a 3 and a 2 do not work with b 2
      clashes.push_back(
          {{{"a", universe.set_of("a", {"3", "2"})}, {"b", universe.set_of("b", {"2"})}}});
    return clashes;
  };
  EXPECT_EQ(solve(questions), (Solution{{"a", 0}, {"b", 1}}));
  EXPECT_EQ(asked, 2);
}

// Tries every choice in a small universe.
bool exists(const Universe& universe) {
  std::vector<std::string> names;
  for (const auto& [name, versions] : universe.packages) names.push_back(name);
  std::map<std::string, std::string> chosen;
  auto holds = [&](const Requires& list) {
    return std::ranges::all_of(list, [&](const auto& need) {
      const auto found = chosen.find(need.first);
      return found != chosen.end() &&
             std::ranges::find(need.second, found->second) != need.second.end();
    });
  };
  std::function<bool(std::size_t)> rest = [&](std::size_t at) {
    if (at == names.size())
      return holds(universe.asked) && std::ranges::all_of(chosen, [&](const auto& one) {
               return holds(universe.find(one.first, one.second));
             });
    if (rest(at + 1)) return true;
    for (const auto& version : universe.packages.at(names[at])) {
      chosen[names[at]] = version;
      if (rest(at + 1)) return true;
    }
    chosen.erase(names[at]);
    return false;
  };
  return rest(0);
}

TEST(Resolver, agrees_with_trying_everything) {
  std::mt19937 random(35);
  auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  int without = 0;
  for (int round = 0; round < 3000; ++round) {
    Universe universe;
    const unsigned packages = 2 + below(4);
    auto name = [](unsigned i) { return std::string(1, static_cast<char>('a' + i)); };
    for (unsigned i = 0; i < packages; ++i) {
      for (unsigned v = 1 + below(3); v-- > 0;)
        universe.packages[name(i)].push_back(std::to_string(v));
    }
    auto some = [&](const std::string& package) {
      Versions chosen;
      for (const auto& one : universe.packages[package]) {
        if (below(2)) chosen.push_back(one);
      }
      return chosen;
    };
    for (unsigned i = 0; i < packages; ++i) {
      if (below(2)) universe.asked[name(i)] = some(name(i));
      for (const auto& version : universe.packages[name(i)]) {
        const auto other = name(below(packages));
        if (other != name(i) && below(3))
          universe.required[{name(i), version}][other] = some(other);
      }
    }
    const auto found = solve(universe.questions());
    ASSERT_EQ(found.has_value(), exists(universe)) << "round " << round;
    if (found) {
      auto all = universe.asked;
      for (const auto& [package, version] : *found) {
        const auto& list = universe.find(package, universe.packages[package][version]);
        for (const auto& [other, allowed] : list)
          ASSERT_TRUE(found->contains(other) &&
                      universe.set_of(other, allowed).contains(found->at(other)));
      }
      for (const auto& [other, allowed] : all)
        ASSERT_TRUE(found->contains(other) &&
                    universe.set_of(other, allowed).contains(found->at(other)));
    } else {
      ++without;
    }
  }
  EXPECT_GT(without, 500);
  EXPECT_LT(without, 2500);
}

}  // namespace
}  // namespace wheelscope::resolver
