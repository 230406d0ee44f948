// Runs jobs of known memory cost on all cores, within a budget.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace wheelscope {

// Runs run(i) for every job, the costliest first, on `threads` threads; those under way never cost
// more than `budget` together, unless one alone does. The first exception that a job throws ends
// the others as soon as they are done with their job, and is thrown again here.
void run_within_budget(const std::vector<std::uint64_t>& costs, std::uint64_t budget,
                       unsigned threads, const std::function<void(std::size_t)>& run);

}  // namespace wheelscope
