// Divides work on the CPU among torch's own threads.
#pragma once

#include <torch/csrc/stable/ops.h>

#include <algorithm>

namespace opwright {

constexpr int64_t grain_size = 32768;  // elements that justify a thread: torch's own figure

// Calls `range(begin, end)` for parts of the `n` items; an item has `elements_each` elements.
template <typename Range>
void parallel(int64_t n, int64_t elements_each, const Range& range) {
  const int64_t grain = std::max<int64_t>(1, grain_size / std::max<int64_t>(1, elements_each));
  if (n <= grain) return range(0, n);  // one thread is enough: no call into torch
  torch::stable::parallel_for(0, n, grain, range);
}

}  // namespace opwright
