// A stored file is found again, whole or not at all, and the cache does not grow without end.
#include "source/cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace wheelscope {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("wheelscope-cache-" + std::to_string(getpid()));
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file() && entry.path().filename() != "lock") found.push_back(entry);
    }
    return found;
  }
};

TEST(Cache, FindsWhatWasStored) {
  const Folder folder;
  Cache cache(folder.path);
  EXPECT_FALSE(cache.find("a"));
  cache.store("a", "one");
  cache.store("b", "");
  EXPECT_EQ(cache.find("a"), "one");
  EXPECT_EQ(cache.find("b"), "");
  cache.store("a", "two");
  EXPECT_EQ(cache.find("a"), "two");
}

TEST(Cache, WithoutAFolderNothingIsKept) {
  Cache none;
  none.store("a", "one");
  EXPECT_FALSE(none.find("a"));
  Cache unwritable("/proc/nowhere");
  unwritable.store("a", "one");
  EXPECT_FALSE(unwritable.find("a"));
}

TEST(Cache, DamageIsNoticed) {
  const Folder folder;
  Cache cache(folder.path);
  cache.store("a", "one");
  const auto file = folder.files().at(0);
  std::ofstream(file, std::ios::app) << "more";
  EXPECT_FALSE(cache.find("a"));
  fs::resize_file(file, 5);
  EXPECT_FALSE(cache.find("a"));
}

TEST(Cache, ForgetsWhatWasNotUsedForLongest) {
  const Folder folder;
  {
    Cache cache(folder.path, 1000);
    for (int i = 0; i < 20; ++i) {
      cache.store(std::to_string(i), std::string(100, 'x'));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    cache.store("too large", std::string(900, 'x'));
    EXPECT_TRUE(cache.find("0"));  // used again
  }
  Cache cache(folder.path, 1000);
  EXPECT_TRUE(cache.find("0"));
  EXPECT_TRUE(cache.find("19"));
  EXPECT_FALSE(cache.find("1"));
  EXPECT_FALSE(cache.find("too large"));
  EXPECT_LE(folder.files().size(), 7U);
}

TEST(Cache, TwoProcessesShareIt) {
  const Folder folder;
  std::vector<std::jthread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        Cache cache(folder.path, 3000);
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
