// The risk of the next torch is what earlier ones broke.
#include "answers/atlas.h"

#include <gtest/gtest.h>

namespace wheelscope {
namespace {

// Four versions of torch. The third broke one of two releases that need many symbols; nothing else
// ever broke.
const std::vector<BoundRelease> releases{{.symbols = 3, .loads = {true, true, true, true}},
                                         {.symbols = 14, .loads = {false, true, true, true}},
                                         {.symbols = 400, .loads = {true, true, false, false}},
                                         {.symbols = 100, .loads = {false, true, true, true}}};

TEST(Forecast, ClassesBeginWithTheirNumber) {
  EXPECT_EQ(class_of(0), 0U);
  EXPECT_EQ(class_of(14), 0U);
  EXPECT_EQ(class_of(15), 1U);
  EXPECT_EQ(class_of(99), 2U);
  EXPECT_EQ(class_of(100), 3U);
  EXPECT_EQ(class_of(1'000'000), 3U);
}

TEST(Forecast, CountsWhatLoadedBefore) {
  const Forecast now(releases, 3);
  EXPECT_EQ(now.classes[0].loaded, 5U);  // 3 + 2: the second came with the second torch
  EXPECT_EQ(now.classes[0].broke, 0U);
  EXPECT_EQ(now.classes[3].loaded, 4U);  // a broken release cannot break again
  EXPECT_EQ(now.classes[3].broke, 1U);
  EXPECT_EQ(now.all.loaded, 9U);
  EXPECT_TRUE(now.expects_break(releases[3]));
  EXPECT_FALSE(now.expects_break(releases[0]));
}

TEST(Forecast, KnowsNothingOfLaterVersions) {
  const Forecast early(releases, 1);
  EXPECT_EQ(early.all.broke, 0U);
  EXPECT_FALSE(early.expects_break(releases[2]));
  const auto surprise = back_test(releases, 2);
  EXPECT_EQ(surprise.all.broke, 1U);
  EXPECT_EQ(surprise.expected.loaded, 0U);
  const auto warned = back_test(releases, 3);
  EXPECT_EQ(warned.all.loaded, 3U);
  EXPECT_EQ(warned.expected.loaded, 1U);
  EXPECT_EQ(warned.expected.broke, 0U);
}

TEST(Forecast, OneTorchTellsNothing) {
  const std::vector<BoundRelease> alone{{.symbols = 5, .loads = {true}}};
  EXPECT_EQ(Forecast(alone, 0).all.loaded, 0U);
}

}  // namespace
}  // namespace wheelscope
