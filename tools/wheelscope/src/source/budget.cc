// Schedules jobs: each free thread takes the costliest waiting job that still fits.
#include "source/budget.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <numeric>
#include <thread>

namespace wheelscope {

void run_within_budget(const std::vector<std::uint64_t>& costs, std::uint64_t budget,
                       unsigned threads, const std::function<void(std::size_t)>& run) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t job) { return costs[job]; });
  std::list<std::size_t> waiting(order.begin(), order.end());
  std::uint64_t in_use = 0;
  std::mutex mutex;
  std::condition_variable freed;
  std::exception_ptr failure;

  auto work = [&] {
    std::unique_lock lock(mutex);
    while (!waiting.empty() && !failure) {
      const auto next = std::ranges::find_if(waiting, [&](std::size_t job) {
        return in_use == 0 || costs[job] <= budget - std::min(in_use, budget);
      });
      if (next == waiting.end()) {
        freed.wait(lock);
        continue;
      }
      const auto job = *next;
      waiting.erase(next);
      in_use += costs[job];
      lock.unlock();
      std::exception_ptr thrown;
      try {
        run(job);
      } catch (...) {  // an exception that leaves a thread would end the program
        thrown = std::current_exception();
      }
      lock.lock();
      if (thrown && !failure) failure = thrown;
      in_use -= costs[job];
      freed.notify_all();
    }
  };
  {
    std::vector<std::jthread> others;
    const auto useful = std::min<std::size_t>(threads, costs.size());
    for (std::size_t i = 1; i < useful; ++i) others.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

unsigned all_cores() {
  return std::max(1U, std::thread::hardware_concurrency());
}

void run_in_parallel(std::size_t count, unsigned threads,
                     const std::function<void(std::size_t)>& run) {
  run_within_budget(std::vector<std::uint64_t>(count), 0, threads, run);
}

void run_on_all_cores(std::size_t count, const std::function<void(std::size_t)>& run) {
  run_in_parallel(count, all_cores(), run);
}

}  // namespace wheelscope
