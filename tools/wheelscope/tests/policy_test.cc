// Each rule of a policy finds its defect and nothing else; a policy with a typing error is refused.
#include "findings/findings.h"

#include <gtest/gtest.h>

#include <array>

#include "fixture.h"

namespace wheelscope {
namespace {

// Returns the ids that a policy of these lines finds.
Ids found(const std::string& defect, const std::string& toml) {
  const auto policy = parse_policy(toml).value();
  return ids(check(read_wheel_fixture(defect, {.build_prefixes = policy.build_paths}), policy));
}

TEST(Policy, EmptyOneKeepsToWhatIsWrongForEveryWheel) {
  const std::pair<const char*, Ids> wheels[] = {
      {"good", {}},
      {"debug-and-paths", {"needed"}},
      {"no-device-code", {"cuda-code"}},
      {"false-tag", {"tag-platform"}},
      {"tags-differ", {"tag-mismatch"}},
      {"any-with-binaries", {"tag-platform", "tag-purelib"}},
      {"other-machine", {"tag-machine"}},
      {"weak-hardening", {"hardening"}},  // text relocations
      {"torch-symbol-unknown", {"torch-symbol"}},
      {"between-policies-2_29", {}},
      {"between-policies-2_32", {}},
      {"between-policies-false", {"tag-platform"}},
      {"linux-tag", {"tag-platform"}},  // PyPI refuses it
      {"variant", {"variant-label"}}};  // without variant.json
  for (const auto& [wheel, expected] : wheels) EXPECT_EQ(found(wheel, ""), expected) << wheel;
}

TEST(Policy, EachRuleFindsItsDefect) {
  const std::array<std::string, 3> rules[] = {
      // the policy, the wheel, what is found
      {"platform.highest = 'manylinux_2_28'\nlevels.tag-platform = 'off'", "too-new-platform",
       "platform"},
      {"size.limit_mb = 0", "good", "size-limit"},
      {"python.abi = ['none']", "one-python", "python-abi"},
      {"python.min = '3.10'", "one-python", "python-min"},
      {"torch.abi = ['stable']", "cxx-abi", "torch-abi"},
      {"torch.min = '2.10'", "torch-too-new", "torch-min"},
      {"cuda.runtime = ['static']", "dynamic-cudart-13", "cuda-runtime"},
      {"cuda.driver = '525.60.13'", "dynamic-cudart-13", "cuda-driver"},
      {"cuda.driver = '525.60.13'", "good", "cuda-driver"},
      {"cuda.sass = ['80', '75']", "good", "cuda-sass"},
      {"cuda.ptx = true", "debug-and-paths", "cuda-ptx"},
      {"libraries.needed = ['libtorch.so']", "debug-and-paths", "needed"},
      {"libraries.rpath = ['$ORIGIN']", "debug-and-paths", "rpath"},
      {"hardening.relro = 'full'", "weak-hardening", "hardening"},
      {"contents.debug_info = false", "debug-and-paths", "debug-info"},
      {"contents.build_paths = ['/home/']", "debug-and-paths", "build-path"}};
  for (const auto& [toml, defect, id] : rules) {
    auto ids = found(defect, toml);
    // One of the wheels needs a library that nothing brings, which is wrong under every policy.
    if (id != "needed") ids.erase("needed");
    EXPECT_EQ(ids, Ids{id}) << toml;
  }
}

TEST(Policy, GoodWheelKeepsToAllThatItCan) {
  EXPECT_EQ(found("good", R"(
    platform.highest = "manylinux_2_28"
    size.limit_mb = 100
    python = { abi = ["none"], min = "3.10" }
    torch = { abi = ["stable"], min = "2.10" }
    cuda = { runtime = ["none", "static"], sass = ["80"], ptx = true }
    libraries = { needed = ["libtorch.so"], rpath = [] }
    hardening = { relro = "full", bind_now = true, nx = true, stack_protector = true }
    contents = { debug_info = false, build_paths = ["/home/"] })"),
            Ids{});
}

TEST(Policy, HardeningNamesEachFault) {
  const auto policy =
      parse_policy(
          "hardening = { relro = 'full', bind_now = true, nx = true, stack_protector = true }")
          .value();
  EXPECT_EQ(check(read_wheel_fixture("weak-hardening"), policy).size(), 5U);
}

TEST(Policy, OpenMPIsTorchsBesideTorch) {
  auto wheel = read_wheel_fixture("debug-and-paths");
  wheel.verdicts.platform.external_libraries = {"libgomp.so.1", "libtorch.so"};
  EXPECT_EQ(ids(check(wheel, {})), Ids{});
  wheel.verdicts.platform.external_libraries = {"libgomp.so.1"};
  EXPECT_EQ(ids(check(wheel, {})), Ids{"needed"});
}

TEST(Policy, SetsLevels) {
  EXPECT_EQ(found("no-device-code", "levels.cuda-code = 'off'"), Ids{});
  for (const auto& [name, level] :
       {std::pair{"note", Finding::Level::note}, std::pair{"warning", Finding::Level::warning},
        std::pair{"error", Finding::Level::error}}) {
    const auto policy = parse_policy(std::string("levels.cuda-code = '") + name + "'").value();
    EXPECT_EQ(check(read_wheel_fixture("no-device-code"), policy).at(0).level, level);
    EXPECT_STREQ(name_of(level), name);
  }
}

TEST(Policy, RefusesWhatItDoesNotKnow) {
  for (const auto* wrong :
       {"platform.hihgest = 'x'", "size.limit_mb = 'much'", "size.limit_mb = -1", "cuda.ptx = 1",
        "cuda.sass = 'x'", "cuda.sass = [80]", "platform.highest = 28", "levels.x = 'fatal'",
        "platform = 1", "not toml"}) {
    EXPECT_FALSE(parse_policy(wrong)) << wrong;
  }
  EXPECT_TRUE(has(parse_policy("platform.hihgest = 'x'").error().what, "platform.hihgest"));
  EXPECT_TRUE(
      has(parse_policy("platform.hihgest = 'x'").error().what, "did you mean platform.highest"));
  std::string another_file = "[tool]\n";
  for (int i = 0; i < 100; ++i) another_file += "key" + std::to_string(i) + " = 1\n";
  EXPECT_LT(parse_policy(another_file).error().what.size(), 300U);
  EXPECT_TRUE(has(parse_policy("\n\nnot toml").error().what, "line 3"));
}

}  // namespace
}  // namespace wheelscope
