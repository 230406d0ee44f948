// File names, metadata, RECORD lines, versions and specifiers are read as the packaging specs say.
#include "packaging/metadata.h"

#include <gtest/gtest.h>

#include "packaging/marker.h"
#include "packaging/record.h"
#include "packaging/requirement.h"
#include "packaging/specifier.h"
#include "packaging/tag.h"
#include "packaging/version.h"
#include "packaging/wheel_name.h"
#include "text/dotted_version.h"

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
  for (const auto* wrong :
       {"torch-2.10.0.whl", "----.whl", "x-1.0-py3--any.whl", "x-what-py3-none-any.whl",
        "a b-1.0-py3-none-any.whl", "x-1.0-py3-none-any..linux.whl"})
    EXPECT_FALSE(parse_wheel_name(wrong)) << wrong;
  EXPECT_FALSE(parse_wheel_name("torch-2.10.0-cp311-cp311-linux_x86_64.zip"));
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

// Build backends fold long licences; a line of it can be blank.
TEST(Metadata, AFoldedLineMayBeBlank) {
  WheelClaims claims;
  parse_metadata("Name: x\nLicense: Apache\n        \n more\nRequires-Dist: torch==2.14.1\n",
                 claims);
  EXPECT_EQ(claims.requires_dist, std::vector<std::string>{"torch==2.14.1"});
  EXPECT_EQ(claims.license, "Apache");
}

TEST(Metadata, ReadsHeadersAsPythonDoes) {
  WheelClaims claims;
  parse_metadata(
      " lost\nNAME: x\nname: y\n: nothing\nrequires-python: >=3.10\rVersion:1\nno header\nSummary: "
      "late\n",
      claims);
  EXPECT_EQ(claims.name, "x");
  EXPECT_EQ(claims.requires_python, ">=3.10");
  EXPECT_EQ(claims.version, "1");
  EXPECT_EQ(claims.summary, "") << "a line without a colon ends the headers";
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

TEST(Pep440, OrdersVersionsAsTheSpecDoes) {
  const char* order[] = {"0!1.0.dev1",     "1.0a1.dev1", "1.0a1",   "1.0a1.post1", "1.0b2",
                         "1.0rc1",         "1.0",        "1.0+abc", "1.0+abc.1",   "1.0+5",
                         "1.0.post1.dev2", "1.0.post1",  "1.0.1",   "1!0.1"};
  for (std::size_t i = 0; i + 1 < std::size(order); ++i)
    EXPECT_LT(parse_version(order[i]).value(), parse_version(order[i + 1]).value()) << order[i];
  EXPECT_EQ(parse_version("1.0"), parse_version("1.0.0"));
}

TEST(Pep440, NormalisesSpellings) {
  for (const auto& [spelt, normal] : {std::pair{" v1.0-ALPHA.2 ", "1.0a2"},
                                      {"1.0-1", "1.0.post1"},
                                      {"1.0.rev3", "1.0.post3"},
                                      {"1.0c", "1.0rc0"},
                                      {"1.0_dev", "1.0.dev0"},
                                      {"2!1.0+Ubuntu_1", "2!1.0+ubuntu.1"},
                                      {"1.0.post.dev1", "1.0.post0.dev1"}}) {
    const auto version = parse_version(spelt);
    ASSERT_TRUE(version) << spelt;
    EXPECT_EQ(to_string(*version), normal);
  }
  for (const auto* wrong : {"", "x", "1.", "1.0+", "1.0+a..b", "1.0foo", "1!", "1.0 1", "1.0+a!"})
    EXPECT_FALSE(parse_version(wrong)) << wrong;
}

TEST(Specifier, Evaluates) {
  EXPECT_EQ(fulfils("3.11", ">=3.10, <4"), true);
  EXPECT_EQ(fulfils("3.9", ">=3.10"), false);
  EXPECT_EQ(fulfils("2.15.1", "==2.15.*"), true);
  EXPECT_EQ(fulfils("2.1", "==2.15.*"), false);
  EXPECT_EQ(fulfils("2.15", "==2.15.0"), true);
  EXPECT_EQ(fulfils("2.15.0+cu130", "==2.15"), true);
  EXPECT_EQ(fulfils("2.15.0", "==2.15+cu130"), false);
  EXPECT_EQ(fulfils("2.15", "!=2.15.*"), false);
  EXPECT_EQ(fulfils("2.16", "~=2.15"), true);
  EXPECT_EQ(fulfils("3.0", "~=2.15"), false);
  EXPECT_EQ(fulfils("2.15", ">2.15"), false);
  EXPECT_EQ(fulfils("2.15.post1", ">2.15"), false);
  EXPECT_EQ(fulfils("2.15+cu1", ">2.15"), false);
  EXPECT_EQ(fulfils("2.15rc1", "<2.15"), false);
  EXPECT_EQ(fulfils("2.15rc1", "<2.15.post1"), true);
  EXPECT_EQ(fulfils("2.15.post1+cu1", ">2.15.post1"), false);
  EXPECT_EQ(fulfils("2.15.dev2", ">2.15.dev1"), true);
  EXPECT_EQ(fulfils("2.14", "<=2.15"), true);
  EXPECT_EQ(fulfils("2.14", "===2.14"), true);
  EXPECT_EQ(fulfils("V2.14-rc1", "===v2.14-RC1"), true);
  EXPECT_EQ(fulfils("V2.14-rc1", "===2.14rc1"), false);
  EXPECT_EQ(fulfils("no version", ">=1"), false);
  EXPECT_EQ(fulfils("2.14", ", what is this"), std::nullopt);
  for (const auto* wrong : {"~=2", ">=1.0+a", "==1.0.dev1.*", "==1.0a1.*", ">=1.*", "=1", "===a b"})
    EXPECT_FALSE(parse_specifiers(wrong)) << wrong;
}

// A cell of a matrix names a minor version, which stands for all of its releases.
TEST(Specifier, AMinorVersionFulfilsWhatOneOfItsReleasesDoes) {
  for (const auto* specifier : {"==2.14.1", ">=2.14.3", "!=2.14.0", "<2.14.1", "~=2.14.2", "", "?"})
    EXPECT_TRUE(can_fulfil("2.14", specifier)) << specifier;
  for (const auto* specifier : {"==2.15.1", "<2.14", ">=2.15", "!=2.14.*", ">2.14.1,<2.14.2"})
    EXPECT_FALSE(can_fulfil("2.14", specifier)) << specifier;
  EXPECT_FALSE(can_fulfil("2.14.0", "==2.14.1"));
}

TEST(Requirement, IsTakenApart) {
  const auto torch = parse_requirement("torch[a, b] (>=2.10,<3) ; extra == 'x'");
  EXPECT_EQ(torch.name, "torch");
  EXPECT_EQ(torch.extras, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(torch.specifiers, ">=2.10,<3");
  EXPECT_EQ(torch.marker, "extra == 'x'");
  const auto url = parse_requirement("x @ https://example.org/a;b ; os_name == 'nt'");
  EXPECT_EQ(url.url, "https://example.org/a;b");
  EXPECT_EQ(url.marker, "os_name == 'nt'");
  EXPECT_EQ(parse_requirement("x[").extras.size(), 0U);
  EXPECT_EQ(canonical_name("Friendly.__Bard"), "friendly-bard");
}

TEST(Marker, Holds) {
  const auto here = linux_environment("3.13", "x86_64");
  for (const auto* marker :
       {"", "python_version >= '3.10'", "'3.10' <= python_version", "sys_platform == 'linux'",
        "python_version in '3.12 3.13'", "os.name == 'posix' and (extra == 'x' or extra == '')",
        "platform_machine not in 'aarch64'", "python_full_version < '3.13.1'",
        "extra == 'x' or sys_platform != 'win32'", "os_name >= 'posix'"})
    EXPECT_EQ(holds(marker, here), true) << marker;
  for (const auto* marker :
       {"python_version < '3.10'", "extra == 'cuda'", "sys_platform == 'win32'",
        "platform_system == 'Windows' and platform_release == '1'", "python_version >= 'x'",
        "os_name < 'a'", "os_name > 'a'", "os_name >= 'q'"})
    EXPECT_EQ(holds(marker, here), false) << marker;
  for (const auto* marker :
       {"platform_release == '6'", "nonsense", "python_version", "'a' == 'b'", "os_name == 'x",
        "(os_name == 'posix'", "os_name ~= 'posix'", "os_name not 'x'", "color == 'red'"})
    EXPECT_EQ(holds(marker, here), std::nullopt) << marker;
  EXPECT_EQ(holds(std::string(1000, '('), here), std::nullopt);
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

TEST(Tag, AdmitsWhatInstallersDo) {
  auto admitted = [](const char* tag, const char* python) {
    return admits(split_tag(tag), PythonBuild(python));
  };
  for (const auto* tag : {"py3-none-any", "py313-none-any", "py310-none-any", "cp313-cp313-x",
                          "cp313-none-x", "cp310-abi3-x", "cp313-abi3-x"})
    EXPECT_TRUE(admitted(tag, "3.13")) << tag;
  for (const auto* tag :
       {"py2-none-any", "py314-none-any", "cp312-cp312-x", "cp313-cp313t-x", "cp314-abi3-x",
        "cp313-abi3t-x", "pp313-none-x", "cp312-none-x", "py3-abi3-x"})
    EXPECT_FALSE(admitted(tag, "3.13")) << tag;
  EXPECT_TRUE(admitted("cp315-abi3t-x", "3.15t"));
  EXPECT_FALSE(admitted("cp315-abi3-x", "3.15t"));
  EXPECT_TRUE(admitted("cp313-cp313t-x", "3.13t"));
}

TEST(Tag, RunsOnTheSystemsThatItNames) {
  const LinuxSystem debian{"x86_64", System::glibc, "2.31"}, alpine{"x86_64", System::musl, "1.2"},
      arm{"aarch64", System::glibc, "2.31"};
  for (const auto* tag : {"any", "linux_x86_64", "manylinux2014_x86_64", "manylinux_2_29_x86_64",
                          "manylinux_2_31_x86_64", "manylinux1_x86_64"})
    EXPECT_TRUE(runs_on(tag, debian)) << tag;
  for (const auto* tag : {"manylinux_2_32_x86_64", "musllinux_1_2_x86_64", "win_amd64",
                          "macosx_11_0_x86_64", "manylinux2014_aarch64", "manylinux_2_4_x86_64"})
    EXPECT_FALSE(runs_on(tag, debian)) << tag;
  EXPECT_TRUE(runs_on("musllinux_1_1_x86_64", alpine));
  EXPECT_FALSE(runs_on("manylinux2014_x86_64", alpine));
  EXPECT_FALSE(runs_on("manylinux_2_12_aarch64", arm));
}

}  // namespace
}  // namespace wheelscope
