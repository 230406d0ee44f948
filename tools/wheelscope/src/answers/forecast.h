// What the next torch may break. Its symbols cannot be known, and by name the symbols that went
// were no others than those that stayed: a release's risk is how many of them it needs. So a
// forecast is the share of releases with as many symbols that a new torch broke before.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace wheelscope {

// A release on torch's C++ ABI.
struct BoundRelease {
  std::uint64_t symbols = 0;  // of torch, that it needs
  std::vector<bool> loads;    // with each torch, the oldest first: all of them are there
};

// Of releases that loaded with a torch, how many did not with the one after it.
struct Breaks {
  std::uint64_t loaded = 0, broke = 0;

  double rate() const {
    return loaded ? static_cast<double>(broke) / static_cast<double>(loaded) : 0;
  }
};

// Releases with about as many symbols; each class begins with a number of them.
inline constexpr std::array<std::uint64_t, 4> forecast_classes{1, 15, 40, 100};
std::size_t class_of(std::uint64_t symbols);

struct Forecast {
  std::array<Breaks, forecast_classes.size()> classes;
  Breaks all;

  // Of the last five changes of torch up to this one, by its number in `loads`.
  Forecast(const std::vector<BoundRelease>& releases, std::size_t torch);

  const Breaks& of(const BoundRelease& release) const { return classes[class_of(release.symbols)]; }

  // More often than releases on the whole.
  bool expects_break(const BoundRelease& release) const { return of(release).rate() > all.rate(); }
};

// What it would have said before a torch, and what came of it.
struct BackTest {
  Breaks all, expected;  // expected: of those alone that were expected to break
};
BackTest back_test(const std::vector<BoundRelease>& releases, std::size_t torch);

}  // namespace wheelscope
