// Finds versions of packages that work together, or the smallest reason why there are none.
//
// Everything is expressed as clashes: statements that are never all true at once, such as "a is
// 2.0, and b is absent or older than 1.5", which says that a 2.0 requires b >= 1.5. The search
// decides for one package after another, follows what each decision rules out, and learns a new
// clash from each dead end, as PubGrub does
// (https://github.com/dart-lang/pub/blob/master/doc/solver.md). Every package's versions are known
// as a list, so sets of versions are sets of numbers, and nothing here needs to know how versions
// are spelt or compared.
#pragma once

#include <bit>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace wheelscope::resolver {

// The versions that a package may still have, and whether it may be absent.

// Versions are numbers from 0 on; the last number stands for an absent package.
class VersionSet {
 public:
  VersionSet() = default;
  // Makes an empty set for a package with `versions` versions; `all`: a full set, including
  // absence.
  explicit VersionSet(std::size_t versions, bool all = false)
      : size_(versions + 1), words_((size_ + 63) / 64, all ? ~std::uint64_t{0} : 0) {
    clear_beyond();
  }

  std::size_t versions() const { return size_ - 1; }
  std::size_t absent() const { return size_ - 1; }

  bool contains(std::size_t value) const { return words_[value / 64] >> value % 64 & 1; }
  VersionSet& add(std::size_t value) {
    words_[value / 64] |= std::uint64_t{1} << value % 64;
    return *this;
  }

  std::size_t count() const {
    std::size_t sum = 0;
    for (const auto word : words_) sum += static_cast<std::size_t>(std::popcount(word));
    return sum;
  }
  bool empty() const { return count() == 0; }
  bool full() const { return count() == size_; }
  bool is_within(const VersionSet& other) const { return (*this & ~other).empty(); }
  bool meets(const VersionSet& other) const { return !(*this & other).empty(); }

  // Returns the lowest number; for an empty set, a higher one than any.
  std::size_t first() const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i]) return i * 64 + static_cast<std::size_t>(std::countr_zero(words_[i]));
    }
    return size_;
  }

  VersionSet operator~() const {
    auto result = *this;
    for (auto& word : result.words_) word = ~word;
    result.clear_beyond();
    return result;
  }
  VersionSet operator&(const VersionSet& other) const {
    auto result = *this;
    for (std::size_t i = 0; i < words_.size(); ++i) result.words_[i] &= other.words_[i];
    return result;
  }
  VersionSet operator|(const VersionSet& other) const { return ~(~*this & ~other); }
  bool operator==(const VersionSet&) const = default;

 private:
  void clear_beyond() {
    if (size_ % 64) words_.back() &= (std::uint64_t{1} << size_ % 64) - 1;
  }

  std::size_t size_ = 0;
  std::vector<std::uint64_t> words_;
};

struct Term {
  std::string package;
  VersionSet values;
};

// Terms that are never all true. `reason` means something only to whoever made the clash.
struct Clash {
  std::vector<Term> terms;
  std::size_t reason = 0;
};

using Solution = std::map<std::string, std::size_t>;  // package -> version, for present packages

// The package that must be present; it has one version.
inline const std::string root = "";

// The questions that the search asks, each once.
struct Questions {
  std::function<std::size_t(const std::string& package)> count_versions;
  // Returns what follows from one version of a package being present.
  std::function<std::vector<Clash>(const std::string& package, std::size_t version)> needs;
  // Returns the version to try first; without this function, the lowest number.
  std::function<std::size_t(const std::string& package, const VersionSet& of)> choose = {};
  // Returns what is wrong with a solution; nothing if it is accepted.
  std::function<std::vector<Clash>(const Solution& solution)> check = {};
};

// Clashes that exclude every solution. None can be left out, where clashes between the same
// packages count as one.
using Conflict = std::vector<Clash>;

std::expected<Solution, Conflict> solve(const Questions& questions);

// Makes a clash: `package` in `version` allows only these versions of another, or its absence.
Clash requirement(const std::string& package, const VersionSet& version, const std::string& other,
                  const VersionSet& allowed, std::size_t reason);

}  // namespace wheelscope::resolver
