// Each defect of an archive is one problem at one member, and the others are still read.
#include "readers/zip.h"

#include <gtest/gtest.h>

#include "fixture.h"

namespace wheelscope {
namespace {

// Returns the ids of all problems of listing and reading.
Ids problems(const Fixture& file, const ZipLimits& limits = {}) {
  Ids found;
  const auto archive = read_zip(file.bytes(), limits).value();
  for (const auto& problem : archive.problems.listed) found.insert(problem.id);
  for (const auto& member : archive.members) {
    if (!member.readable) continue;
    const auto data = read_member(file.bytes(), member);
    if (!data) found.insert(data.error().id);
  }
  return found;
}

struct Defect {
  const char* file;
  const char* id;
};

class ZipDefect : public testing::TestWithParam<Defect> {};

TEST_P(ZipDefect, IsOneProblem) {
  const Fixture file(std::string("zip/") + GetParam().file + ".zip");
  EXPECT_EQ(problems(file), Ids{GetParam().id});
}

INSTANTIATE_TEST_SUITE_P(
    Zip, ZipDefect,
    testing::Values(Defect{"prefix", "zip-prefix"}, Defect{"wrong-crc", "zip-crc"},
                    Defect{"crc-differs-in-local-header", "zip-header"},
                    Defect{"method-differs-in-local-header", "zip-header"},
                    Defect{"size-differs-in-local-header", "zip-header"},
                    Defect{"encrypted", "zip-encrypted"}, Defect{"unknown-method", "zip-method"},
                    Defect{"damaged-data", "zip-data"}, Defect{"inflates-to-less", "zip-size"},
                    Defect{"inflates-to-more", "zip-size"}, Defect{"bomb", "zip-bomb"},
                    Defect{"no-local-header", "zip-header"},
                    Defect{"other-name-in-local-header", "zip-header"},
                    Defect{"local-header-out-of-range", "zip-header"},
                    Defect{"overlap", "zip-overlap"},
                    Defect{"broken-second-central-header", "zip-directory"},
                    Defect{"wrong-count", "zip-directory"}, Defect{"traversal", "zip-traversal"},
                    Defect{"absolute", "zip-traversal"}, Defect{"drive", "zip-traversal"},
                    Defect{"backslash", "zip-traversal"}, Defect{"duplicate", "zip-duplicate"}),
    [](const auto& test) {
      std::string name = test.param.file;
      std::erase(name, '-');
      return name;
    });

TEST(Zip, ReadsEveryKindOfSoundArchive) {
  for (const auto* name : {"good", "stored", "comment", "zip64", "data-descriptor", "empty"}) {
    EXPECT_EQ(problems(Fixture("zip/" + std::string(name) + ".zip")), Ids{}) << name;
  }
}

TEST(Zip, InflatesToTheContents) {
  for (const auto* name : {"good", "zip64", "data-descriptor"}) {
    const Fixture file("zip/" + std::string(name) + ".zip");
    const auto archive = read_zip(file.bytes()).value();
    for (const auto room : {Room::memory, Room::disk}) {
      const auto data = read_member(file.bytes(), archive.members.front(), room).value();
      EXPECT_EQ(data.bytes().text().substr(0, 12), "hello hello ") << name;
      EXPECT_EQ(data.bytes().size(), 600U);
    }
  }
}

// A wheel of 57 MB may contain a library of 513 MB, but not in memory; one that is compressed a
// hundredfold is not read.
TEST(Zip, FindsRoomForALargeMember) {
  constexpr std::uint64_t mega = 1'000'000, wheel = 57 * mega;
  EXPECT_EQ(room_for({.size = 300 * mega, .method = 8}, wheel), Room::memory);
  EXPECT_EQ(room_for({.size = 513 * mega, .method = 8}, wheel), Room::disk);
  EXPECT_EQ(room_for({.size = 5000 * mega, .method = 8}, wheel), std::nullopt);
  EXPECT_EQ(room_for({.size = 5000 * mega, .method = 0}, wheel), Room::memory);
  ZipMember absurd{.size = std::uint64_t{1} << 60, .method = 8};
  const auto data = read_member(Bytes(), absurd, Room::disk);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().id, "limit");
}

TEST(Zip, NeedsACentralDirectory) {
  for (const auto* name : {"truncated", "empty-file", "directory-out-of-range", "zip64-broken"}) {
    EXPECT_FALSE(read_zip(Fixture("zip/" + std::string(name) + ".zip").bytes())) << name;
  }
}

TEST(Zip, UnpacksNoMoreThanItsLimits) {
  const Fixture file("zip/good.zip");
  EXPECT_EQ(problems(file, {.member_size = 100}), Ids{"zip-bomb"});
  EXPECT_EQ(problems(file, {.total_size = 602}), Ids{"zip-bomb"});
  EXPECT_EQ(problems(file, {.members = 1}), Ids{"zip-directory"});
}

TEST(Zip, TellsTheOffset) {
  const Fixture file("zip/damaged-data.zip");
  const auto archive = read_zip(file.bytes()).value();
  EXPECT_EQ(read_member(file.bytes(), archive.members.front()).error().offset, 35U);
}

}  // namespace
}  // namespace wheelscope
