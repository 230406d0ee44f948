// Limits the memory that an input may cost, and runs jobs within that limit: a small file must not
// be able to demand a large computer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace wheelscope {

// A number of bytes, shared by the threads that read one input. Readers take from it before they
// keep anything whose size the input decides.
class Allowance {
 public:
  explicit Allowance(std::uint64_t bytes = unlimited) : left_(bytes) {}

  // For facts of a wheel or library of this size. Together with the contents of members that are
  // being read (see contents_for), memory stays within 4 times the file's size plus 256 MiB.
  static std::uint64_t facts_for(std::uint64_t file_size) { return file_size + (64 << 20); }
  static std::uint64_t contents_for(std::uint64_t file_size) { return 3 * file_size + (128 << 20); }

  // For a member that is written to disk instead (see Source::spool). No healthy member is packed
  // so well that it needs more.
  static std::uint64_t disk_for(std::uint64_t file_size) { return 16 * file_size; }

  bool take(std::uint64_t bytes) {
    auto left = left_.load();
    while (bytes <= left) {
      if (left_.compare_exchange_weak(left, left - bytes)) return true;
    }
    return false;
  }
  void give_back(std::uint64_t bytes) { left_ += bytes; }

 private:
  static constexpr std::uint64_t unlimited = std::uint64_t{1} << 62;
  std::atomic<std::uint64_t> left_;
};

// Memory that a reader takes while it works; all of it is given back at the end.
class Loan {
 public:
  explicit Loan(Allowance& allowance) : allowance_(allowance) {}
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan() { allowance_.give_back(taken_); }

  bool take(std::uint64_t bytes) {
    if (!allowance_.take(bytes)) return false;
    taken_ += bytes;
    return true;
  }

 private:
  Allowance& allowance_;
  std::uint64_t taken_ = 0;
};

// Calls run(i) for every job, costliest first, on `threads` threads. Running jobs together never
// cost more than `budget`, unless a single job does. If a job throws, no new jobs start, and the
// first exception is thrown again here.
void run_within_budget(const std::vector<std::uint64_t>& costs, std::uint64_t budget,
                       unsigned threads, const std::function<void(std::size_t)>& run);

unsigned all_cores();

// Do the same for `count` jobs that cost nothing.
void run_in_parallel(std::size_t count, unsigned threads,
                     const std::function<void(std::size_t)>& run);
void run_on_all_cores(std::size_t count, const std::function<void(std::size_t)>& run);

}  // namespace wheelscope
