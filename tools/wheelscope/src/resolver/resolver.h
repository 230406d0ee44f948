// Finds versions of packages that go together, or the smallest reason why there are none.
//
// All that is known are clashes: things that are never true at once, such as "a is 2.0, and b is
// absent or older than 1.5", which is how a 2.0 requires b >= 1.5. The search decides for one
// package after the other, follows what that rules out, and learns a new clash from each dead end,
// as PubGrub does (https://github.com/dart-lang/pub/blob/master/doc/solver.md). As every package's
// versions are known as a list, sets of versions are sets of numbers, and nothing here has to know
// how versions are spelt or compared.
#pragma once

#include <expected>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "resolver/version_set.h"

namespace wheelscope::resolver {

struct Term {
  std::string package;
  VersionSet values;
};

// Its terms are never all true. `reason` is for whoever made it.
struct Clash {
  std::vector<Term> terms;
  std::size_t reason = 0;
};

using Solution = std::map<std::string, std::size_t>;  // the packages that are there

// `root` is the package that is to be there; it has one version.
inline const std::string root = "";

// Whom the search asks. Each question is asked once.
struct Provider {
  std::function<std::size_t(const std::string& package)> count_versions;
  // What follows from one version of a package being there.
  std::function<std::vector<Clash>(const std::string& package, std::size_t version)> needs;
  // The version to try first, of several; without it, the lowest number.
  std::function<std::size_t(const std::string& package, const VersionSet& of)> choose = {};
  // What is wrong with a solution. Nothing: it stands.
  std::function<std::vector<Clash>(const Solution& solution)> check = {};
};

// The clashes that there are without any solution; none of them can be left out, where those
// between the same packages count as one.
using Conflict = std::vector<Clash>;

std::expected<Solution, Conflict> solve(const Provider& provider);

// `package` in `version` allows these versions of another, or its absence, alone.
Clash requirement(const std::string& package, const VersionSet& version, const std::string& other,
                  const VersionSet& allowed, std::size_t reason);

}  // namespace wheelscope::resolver
