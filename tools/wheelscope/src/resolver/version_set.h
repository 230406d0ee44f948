// The versions that a package may still have, and whether it may be absent.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace wheelscope::resolver {

// Versions are numbers from 0 on; the last number stands for a package that is not there.
class VersionSet {
 public:
  VersionSet() = default;
  // None of `versions` versions; `all`: all of them, and being absent.
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

  // The lowest number; of an empty set, more than any.
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

}  // namespace wheelscope::resolver
