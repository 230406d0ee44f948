// A wheel serves a GPU as well as its weakest library; loose files, Jetson boards and static
// libraries have their own rules.
#include "verdicts/cuda.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "findings/policy.h"
#include "fixture.h"

namespace wheelscope {
namespace {

GpuVerdict gpu(const std::vector<GpuVerdict>& gpus, const std::string& capability) {
  const auto found = std::ranges::find(gpus, capability, &GpuVerdict::capability);
  return found == gpus.end() ? GpuVerdict{} : *found;
}

TEST(Cuda, TheWeakestLibraryDecides) {
  const auto cuda = read_wheel_fixture("one-library-serves-less").verdicts.cuda;
  ASSERT_EQ(cuda.libraries.size(), 2U);
  EXPECT_EQ(gpu(cuda.gpus, "8.0").served, Served::native);
  EXPECT_EQ(gpu(cuda.gpus, "7.5").served, Served::no);
  EXPECT_EQ(gpu(cuda.gpus, "7.5").library, "pkg/narrow.so");
  EXPECT_EQ(gpu(cuda.gpus, "9.0").served, Served::jit);
  EXPECT_EQ(gpu(cuda.libraries[1].gpus, "7.5").served, Served::native) << "pkg/wide.so";
}

TEST(Cuda, TellsOfATargetInSomeFatBinariesOnly) {
  const auto cuda = read_wheel_fixture("target-in-some-fatbins").verdicts.cuda;
  EXPECT_EQ(gpu(cuda.gpus, "7.5").served, Served::native);
  EXPECT_EQ(gpu(cuda.gpus, "7.5").fatbins, 2U);
  EXPECT_EQ(gpu(cuda.gpus, "7.5").fatbins_unserved, 1U);
  EXPECT_EQ(gpu(cuda.gpus, "8.0").fatbins_unserved, 0U);
}

TEST(Cuda, JetsonCodeRunsOnJetsonsOnly) {
  const auto cuda = read_wheel_fixture("jetson").verdicts.cuda;
  EXPECT_EQ(gpu(cuda.gpus, "7.2").served, Served::native);
  EXPECT_EQ(gpu(cuda.gpus, "7.5").served, Served::no);
  EXPECT_EQ(gpu(cuda.gpus, "8.7").served, Served::native);
  EXPECT_EQ(gpu(cuda.gpus, "8.9").served, Served::no);
  EXPECT_FALSE(sass_serves("101", "10.3")) << "what CUDA 12 called Thor";
}

TEST(Cuda, LooseFilesCountAsOneLibrary) {
  const auto item = read_wheel_fixture("loose-device-code");
  const auto& cuda = item.verdicts.cuda;
  ASSERT_EQ(cuda.libraries.size(), 1U);
  EXPECT_EQ(cuda.libraries[0].library, "19 loose files of device code");
  EXPECT_EQ(cuda.sass, (std::vector<std::string>{"80", "90", "100a"}));
  EXPECT_EQ(cuda.ptx, (std::vector<std::string>{"75", "90"}));
  EXPECT_EQ(gpu(cuda.gpus, "10.0").served, Served::native);
  EXPECT_EQ(gpu(cuda.gpus, "10.3").served, Served::jit) << "sm_100a is for 10.0 alone";
  EXPECT_EQ(item.facts.size_by_part.count("libraries"), 0U);
  EXPECT_EQ(check(item, {}), std::vector<Finding>{}) << "no binary of the host: any is right";
}

TEST(Cuda, StaticLibrariesAreReadButRunNowhere) {
  const auto item = read_wheel_fixture("static-library");
  EXPECT_EQ(item.facts.libraries.at(0).kind, FileKind::archive);
  EXPECT_EQ(item.verdicts.cuda.sass, std::vector<std::string>{"70"});
  EXPECT_TRUE(item.verdicts.cuda.libraries.empty());
  EXPECT_EQ(check(item, {}), std::vector<Finding>{});
}

TEST(Cuda, CodeForOtherProcessorsIsNotJudged) {
  const auto item = read_wheel_fixture("code-for-other-processors");
  EXPECT_EQ(check(item, {}), std::vector<Finding>{});
  EXPECT_EQ(item.verdicts.platform.tag, "any");
  EXPECT_EQ(item.facts.libraries.at(0).role, Role::device);
  EXPECT_EQ(item.facts.libraries.at(1).role, Role::foreign);
  EXPECT_EQ(item.facts.libraries.at(1).machine, "amdgpu");
  EXPECT_EQ(item.facts.libraries.at(2).machine, "hexagon");
}

}  // namespace
}  // namespace wheelscope
