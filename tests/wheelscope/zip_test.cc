// Each defect of an archive is one problem at one member, and the others are still read.
#include "readers/zip.h"

#include <gtest/gtest.h>

#include "fixture.h"

namespace wheelscope {
namespace {

// The ids of all problems of listing and reading.
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
    const auto data = read_member(file.bytes(), archive.members.front()).value();
    EXPECT_EQ(data.bytes().text().substr(0, 12), "hello hello ") << name;
    EXPECT_EQ(data.bytes().size(), 600U);
  }
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
