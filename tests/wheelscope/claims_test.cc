// File names, metadata, RECORD lines, versions and specifiers are read as the packaging specs say.
#include "claims.h"

#include <gtest/gtest.h>

#include "specifier.h"
#include "version.h"

namespace wheelscope {
namespace {

TEST(WheelName, ExpandsCompressedTags) {
  const auto claims =
      parse_wheel_name("numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl")
          .value();
  EXPECT_EQ(claims.name, "numpy");
  EXPECT_EQ(claims.file_name_tags, (std::vector<std::string>{"cp311-cp311-manylinux_2_27_x86_64",
                                                             "cp311-cp311-manylinux_2_28_x86_64"}));
}

TEST(WheelName, TakesABuildNumberAndRefusesOtherCounts) {
  EXPECT_EQ(parse_wheel_name("torch-2.10.0-3-cp311-cp311-linux_x86_64.whl")->build, "3");
  EXPECT_FALSE(parse_wheel_name("torch-2.10.0.whl"));
  EXPECT_FALSE(parse_wheel_name("torch-2.10.0-cp311-cp311-linux_x86_64.zip"));
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
}

TEST(Record, UnquotesFields) {
  const auto lines = parse_record("a,sha256=x,1\r\n\n\"b,\"\"c\"\"\",,\n");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].size, "1");
  EXPECT_EQ(lines[1].path, "b,\"c\"");
}

TEST(Record, HashesAsPipDoes) {
  EXPECT_EQ(record_hash({}), "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
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

TEST(Specifier, Evaluates) {
  EXPECT_TRUE(fulfils("3.11", ">=3.10, <4"));
  EXPECT_FALSE(fulfils("3.9", ">=3.10"));
  EXPECT_TRUE(fulfils("2.15.1", "==2.15.*"));
  EXPECT_FALSE(fulfils("2.1", "==2.15.*"));
  EXPECT_TRUE(fulfils("2.15", "==2.15.0"));
  EXPECT_FALSE(fulfils("2.15", "!=2.15.*"));
  EXPECT_TRUE(fulfils("2.16", "~=2.15"));
  EXPECT_FALSE(fulfils("3.0", "~=2.15"));
  EXPECT_FALSE(fulfils("2.15", ">2.15"));
  EXPECT_TRUE(fulfils("2.14", "<=2.15"));
  EXPECT_TRUE(fulfils("2.14", ", what is this"));
  EXPECT_EQ(specifiers_of("torch (>=2.10,<3) ; extra == 'x'"), ">=2.10,<3");
  EXPECT_EQ(specifiers_of("torch"), "");
}

}  // namespace
}  // namespace wheelscope
