// Tests that file names, metadata and RECORD lines are read as the packaging specs say.
// test_packaging.py and test_peers.py compare the rest with `packaging`.
#include "packaging/claims.h"

#include <gtest/gtest.h>

#include "packaging/record.h"
#include "packaging/requirement.h"
#include "packaging/tag.h"
#include "text/text.h"

namespace wheelscope {
namespace {

TEST(WheelName, RefusesWhatNoInstallerTakes) {
  EXPECT_FALSE(parse_wheel_name("x-1.0-py3-none-any.zip"));
  const std::string many = "a.b.c.d.e.f.g.h.i.j.k";
  EXPECT_FALSE(parse_wheel_name("x-1.0-" + many + "-" + many + "-" + many + ".whl"));
}

TEST(Metadata, StopsAtTheBlankLine) {
  WheelClaims claims;
  parse_metadata(
      "Name: x\r\nVersion: 1\nLicense: MIT\n folded: no\nRequires-Dist: torch (>=2.10)\n\nName: "
      "y\n",
      claims);
  EXPECT_EQ(claims.name, "x");
  EXPECT_EQ(claims.license, "MIT");
  EXPECT_EQ(claims.requires_dist, std::vector<std::string>{"torch (>=2.10)"});
  EXPECT_FALSE(claims.claims_cuda);
}

TEST(WheelName, KnowsVariants) {
  const auto plain = parse_wheel_name("x-1.0-py3-none-manylinux_2_28_x86_64-cu129.whl").value();
  EXPECT_EQ(plain.variant, "cu129");
  EXPECT_EQ(plain.build, "");
  EXPECT_EQ(plain.file_name_tags, std::vector<std::string>{"py3-none-manylinux_2_28_x86_64"});
  const auto built = parse_wheel_name("x-1.0-2a-py3-none-any-null.whl").value();
  EXPECT_EQ(built.variant, "null");
  EXPECT_EQ(built.build, "2a");
}

TEST(Metadata, ClaimsCuda) {
  auto claims_cuda = [](const char* text) {
    WheelClaims claims;
    parse_metadata(text, claims);
    return claims.claims_cuda;
  };
  EXPECT_TRUE(claims_cuda("Name: x\nVersion: 1.0+cu130\n"));
  EXPECT_TRUE(claims_cuda("Name: cuda_x\nRequires-Dist: torch>=2\n"));
  EXPECT_TRUE(claims_cuda(
      "Name: x\nRequires-Dist: torch\nClassifier: Environment :: GPU :: NVIDIA CUDA :: 12\n"));
  EXPECT_FALSE(claims_cuda(
      "Name: x\nRequires-Dist: torchvision\nClassifier: Environment :: GPU :: NVIDIA CUDA\n"));
}

TEST(WheelFile, ReadsTags) {
  WheelClaims claims;
  parse_wheel_file("Generator: g\nRoot-Is-Purelib: true\nTag: py2.py3-none-any\nTag: nonsense\n",
                   claims);
  EXPECT_EQ(claims.wheel_file_tags, (std::vector<std::string>{"py2-none-any", "py3-none-any"}));
  EXPECT_TRUE(claims.root_is_purelib);
  EXPECT_EQ(split_tag("nonsense").platform, "");
  const std::string many = "a.b.c.d.e.f.g.h.i.j.k";
  parse_wheel_file("Tag: " + many + "-" + many + "-" + many + "\n", claims);
  EXPECT_EQ(claims.wheel_file_tags, std::vector{many + "-" + many + "-" + many});
}

TEST(Record, UnquotesFields) {
  const auto lines = parse_record("a,sha256=x,1\r\n\n\"b,\"\"c\"\"\",,\n");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].size, "1");
  EXPECT_EQ(lines[1].path, "b,\"c\"");
}

TEST(Record, TakesEveryStrongHash) {
  EXPECT_EQ(record_hash({}, "sha512").substr(0, 20), "sha512=z4PhNX7vuL3xV");
  EXPECT_EQ(record_hash({}, "sha384").substr(0, 15), "sha384=OLBgp1Gs");
  EXPECT_EQ(record_hash({}, "sha3_256"), "") << "allowed, not computed";
  EXPECT_TRUE(is_strong("sha384") && is_strong("blake2b"));
  EXPECT_FALSE(is_strong("sha1") || is_strong("md5") || is_strong(""));
  EXPECT_EQ(algorithm_of("SHA512=x"), "sha512");
}

TEST(Version, ComparesNumbers) {
  EXPECT_TRUE(older("2.9", "2.10"));
  EXPECT_TRUE(older("525.60.13", "525.105"));
  EXPECT_FALSE(older("2.10", "2.10.0"));
  EXPECT_TRUE(older("manylinux_2_17", "manylinux_2_28"));
  EXPECT_EQ(python_version_of_tag("39"), "3.9");
  EXPECT_EQ(python_version_of_tag("3_10"), "3.10");
  EXPECT_EQ(python_version_of_tag("3"), "3");
}

// A cell of a matrix names a minor version, which stands for all of its releases.
TEST(Specifier, AMinorVersionFulfilsWhatOneOfItsReleasesDoes) {
  for (const auto* specifier : {"==2.14.1", ">=2.14.3", "!=2.14.0", "<2.14.1", "~=2.14.2", "", "?"})
    EXPECT_TRUE(can_fulfil("2.14", specifier)) << specifier;
  for (const auto* specifier : {"==2.15.1", "<2.14", ">=2.15", "!=2.14.*", ">2.14.1,<2.14.2"})
    EXPECT_FALSE(can_fulfil("2.14", specifier)) << specifier;
  EXPECT_FALSE(can_fulfil("2.14.0", "==2.14.1"));
}

TEST(Marker, NestsAsDeepAsItCanBeRead) {
  const auto nested = [](std::size_t depth, const std::string& inner) {
    return std::string(depth, '(') + inner + std::string(depth, ')');
  };
  const auto here = linux_environment("3.13", "x86_64");
  const auto deepest = nested(100, "os_name == 'posix'"), deeper = nested(101, "os_name == 'x'");
  EXPECT_FALSE(nests_too_deep(deepest));
  EXPECT_EQ(holds(deepest, here), true);
  EXPECT_TRUE(nests_too_deep(deeper));
  EXPECT_EQ(holds(deeper, here), std::nullopt);
  EXPECT_FALSE(nests_too_deep("os_name == '" + std::string(200, '(') + "'"));
  EXPECT_FALSE(nests_too_deep(deepest + " or " + deepest));
}

}  // namespace
}  // namespace wheelscope
