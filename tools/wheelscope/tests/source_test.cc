// Sources give their bytes or say that they cannot; every bound is checked, and requested memory is
// counted. The cache finds a stored file whole or not at all, and does not grow without end;
// test_fit.py damages it.
#include "source/source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "fixture.h"
#include "readers/zip.h"
#include "source/budget.h"
#include "source/bytes.h"
#include "source/cache.h"

namespace wheelscope {
namespace {

TEST(Source, SpoolsWhatIsTooLargeForMemory) {
  auto data = Source::spool(5 << 20);
  ASSERT_EQ(data.writable().size(), 5U << 20);
  std::ranges::fill(data.writable(), std::byte{7});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // its pages are given back meanwhile
  EXPECT_EQ(std::ranges::count(data.bytes().span(), std::byte{7}), 5 << 20);
  EXPECT_EQ(Source::spool(std::uint64_t{1} << 60).bytes().size(),
            0U);  // no disk has so much room
}

TEST(Source, AskingForTooMuchGivesNothing) {
  EXPECT_EQ(Source::allocate(std::uint64_t{1} << 62).bytes().size(), 0U);
}

// A source that has a file's bytes up to a limit, in blocks of 100.
struct Partial {
  Fixture file;
  std::uint64_t limit, fetched = 0;
  Source source;

  Partial(const std::string& name, std::uint64_t most) : file(name), limit(most) {
    source = Source::lazy(
        file.bytes().size(),
        [this](std::uint64_t offset, std::span<std::byte> room) {
          if (offset + room.size() > limit) return false;
          fetched += room.size();
          std::ranges::copy(file.bytes().span().subspan(offset, room.size()), room.begin());
          return true;
        },
        100);
  }
};

TEST(Source, LazyOnesFetchWhatIsAskedFor) {
  Partial partial("elf/good.so", 1 << 20);
  const auto bytes = partial.source.bytes();
  EXPECT_EQ(partial.fetched, 0U);
  EXPECT_EQ(bytes.slice(0, 4, "x")->text(),
            "\x7f"
            "ELF");
  EXPECT_EQ(partial.fetched, 100U);
  EXPECT_EQ(bytes.slice(50, 200, "x")->size(), 200U);
  EXPECT_EQ(partial.fetched, 300U);
  EXPECT_TRUE(bytes.window(0, bytes.size(), "x"));
  EXPECT_EQ(partial.fetched, 300U) << "a window is not asked for";
  EXPECT_EQ(bytes.c_string(1, "x")->substr(0, 3), "ELF");
}

TEST(Source, ReadersSayWhatWasWithheld) {
  Partial all("elf/good.so", 1 << 20), head("elf/good.so", 500);
  EXPECT_TRUE(read_elf(all.source.bytes())->problems.empty());
  const auto elf = read_elf(head.source.bytes()).value();
  ASSERT_FALSE(elf.problems.empty());
  for (const auto& problem : elf.problems)
    EXPECT_TRUE(problem.what.ends_with(" was not given")) << problem.what;
}

TEST(Source, ZipsAreReadFromTheirEnd) {
  Partial partial("zip/good.zip", 1 << 20);
  EXPECT_EQ(read_zip(partial.source.bytes())->members.size(), 3U);
}

TEST(SourceDeathTest, LookingAtWhatWasNotAskedForIsABug) {
  Partial partial("elf/good.so", 1 << 20);
  EXPECT_DEATH(partial.source.bytes().text(), "");
}

TEST(Allowance, LoansAreGivenBack) {
  Allowance allowance(100);
  {
    Loan loan(allowance);
    EXPECT_TRUE(loan.take(60));
    EXPECT_FALSE(loan.take(60));
    EXPECT_FALSE(allowance.take(50));
  }
  EXPECT_TRUE(allowance.take(100));
}

TEST(Parallel, AnExceptionInAJobIsThrownAgain) {
  const std::vector<std::uint64_t> costs(50, 1);
  for (const unsigned threads : {1U, 4U}) {
    EXPECT_THROW(run_within_budget(costs, 2, threads,
                                   [](std::size_t job) {
                                     if (job == 7) throw std::bad_alloc();
                                   }),
                 std::bad_alloc);
  }
}

constexpr std::array data{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{0}};
const Bytes view{data, 100};

TEST(Bytes, SlicesInsideOnly) {
  EXPECT_EQ(view.slice(1, 4, "x")->size(), 4U);
  EXPECT_EQ(view.slice(5, 0, "x")->size(), 0U);
  EXPECT_FALSE(view.slice(1, 5, "x"));
  EXPECT_FALSE(view.slice(6, 0, "x"));
  EXPECT_FALSE(view.slice(~std::uint64_t{0}, 2, "x"));
}

TEST(Bytes, NamesThePlaceInTheFile) {
  EXPECT_EQ(view.slice(3, 9, "x").error().offset, 103U);
  EXPECT_EQ(view.slice(2, 2, "x")->origin(), 102U);
}

TEST(BytesDeathTest, AbortsOnAFieldOutsideOfItsRecord) {
  EXPECT_DEATH(view.u64(0), "");
}

namespace fs = std::filesystem;

TEST(Cache, WithoutAFolderNothingIsKept) {
  Cache none;
  none.store("a", "one");
  EXPECT_FALSE(none.find("a"));
  Cache unwritable("/proc/nowhere");
  unwritable.store("a", "one");
  EXPECT_FALSE(unwritable.find("a"));
}

TEST(Cache, ForgetsWhatWasNotUsedForLongest) {
  const auto folder = fresh_folder("cache");
  {
    Cache cache(folder, 1000);
    for (int i = 0; i < 20; ++i) {
      cache.store(std::to_string(i), std::string(100, 'x'));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    cache.store("too large", std::string(900, 'x'));
    EXPECT_TRUE(cache.find("0"));  // used again
  }
  Cache cache(folder, 1000);
  EXPECT_TRUE(cache.find("0"));
  EXPECT_TRUE(cache.find("19"));
  EXPECT_FALSE(cache.find("1"));
  EXPECT_FALSE(cache.find("too large"));
  EXPECT_LE(std::ranges::count_if(fs::recursive_directory_iterator(folder),
                                  [](const auto& entry) { return entry.is_regular_file(); }),
            7 + 1)
      << "the last is the lock";
}

TEST(Cache, TwoProcessesShareIt) {
  const auto folder = fresh_folder("cache");
  std::vector<std::jthread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        Cache cache(folder, 3000);
        const auto key = std::to_string(i % 10);
        cache.store(key, std::string(200, static_cast<char>('a' + i % 10)));
        if (const auto found = cache.find(key)) {
          EXPECT_EQ(*found, std::string(200, static_cast<char>('a' + i % 10)));
        }
      }
    });
  }
}

}  // namespace
}  // namespace wheelscope
