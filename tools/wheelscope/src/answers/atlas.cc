// Counts what earlier changes of torch broke, to estimate what the next one will.
#include "answers/atlas.h"

namespace wheelscope {
namespace {

constexpr std::size_t changes_that_count = 5;

void count(Breaks& breaks, bool broke) {
  ++breaks.loaded;
  breaks.broke += broke;
}

}  // namespace

std::size_t class_of(std::uint64_t symbols) {
  std::size_t found = 0;
  while (found + 1 < forecast_classes.size() && forecast_classes[found + 1] <= symbols) ++found;
  return found;
}

Forecast::Forecast(const std::vector<BoundRelease>& releases, std::size_t torch) {
  for (std::size_t next = torch > changes_that_count ? torch - changes_that_count + 1 : 1;
       next <= torch; ++next) {
    for (const auto& release : releases) {
      if (!release.loads[next - 1]) continue;
      count(all, !release.loads[next]);
      count(classes[class_of(release.symbols)], !release.loads[next]);
    }
  }
}

BackTest back_test(const std::vector<BoundRelease>& releases, std::size_t torch) {
  const Forecast before(releases, torch - 1);
  BackTest test;
  for (const auto& release : releases) {
    if (!release.loads[torch - 1]) continue;
    count(test.all, !release.loads[torch]);
    if (before.expects_break(release)) count(test.expected, !release.loads[torch]);
  }
  return test;
}

}  // namespace wheelscope
