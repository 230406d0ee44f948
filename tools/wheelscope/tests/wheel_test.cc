// A wheel becomes facts and verdicts; RECORD is verified; one bad member does not stop the rest.
// Every kind of file with machine code becomes facts, and none costs more memory than it should.
#include "facts/wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "fixture.h"
#include "packaging/tag.h"
#include "report/json.h"
#include "source/budget.h"
#include "verdicts/verdicts.h"

namespace wheelscope {
namespace {

TEST(Wheel, GoodOneHasNoFindings) {
  for (const auto* name : {"good", "good-stored"}) {
    const auto item = read_wheel_fixture(name);
    EXPECT_TRUE(item.findings.empty()) << name;
    EXPECT_EQ(item.facts.wheel->record_verified, 4U);
    EXPECT_EQ(item.verdicts.platform.tag, "manylinux_2_27_x86_64");
    EXPECT_EQ(item.verdicts.platform.external_libraries, std::vector<std::string>{"libtorch.so"});
    EXPECT_EQ(item.verdicts.python.abi, PythonAbi::none);
    EXPECT_EQ(item.verdicts.torch.abi, TorchAbi::stable);
    EXPECT_EQ(item.verdicts.torch.min, "2.10");
    EXPECT_EQ(item.verdicts.cuda.runtime, CudaRuntime::none);
    EXPECT_EQ(item.verdicts.cuda.sass, (std::vector<std::string>{"80", "90a"}));
    EXPECT_EQ(item.verdicts.cuda.ptx, std::vector<std::string>{"90"});
  }
}

TEST(Wheel, EachDefectHasItsFindings) {
  const std::pair<const char*, Ids> wheels[] = {
      {"record-wrong-hash", {"record-hash", "record-unlisted"}},
      {"record-wrong-size", {"record-size", "record-unlisted"}},
      {"record-bad-lines", {"record-hash", "record-unlisted", "record-extra", "record-duplicate"}},
      {"no-record", {"record-missing", "wheel-incomplete"}},
      {"record-sha512", {}},
      {"record-md5", {"record-hash"}},
      {"signed", {}},
      {"broken-library", {"elf-broken"}},
      {"broken-fatbin", {"fatbin-broken"}},
      {"badly-named", {"wheel-name"}},
      {"win_amd64", {"foreign-platform"}}};
  for (const auto& [wheel, expected] : wheels)
    EXPECT_EQ(ids(read_wheel_fixture(wheel).findings), expected) << wheel;
}

TEST(Wheel, OneBadMemberLeavesTheRest) {
  const auto item = read_wheel_fixture("one-bad-member");
  ASSERT_EQ(item.findings.size(), 1U);
  EXPECT_EQ(item.findings[0].id, "zip-data");
  EXPECT_EQ(item.findings[0].place, "pkg/_C.so");
  EXPECT_TRUE(item.findings[0].offset.has_value());
  EXPECT_EQ(item.facts.wheel->record_verified, 3U);
}

TEST(Verdict, Torch) {
  const auto bound = read_wheel_fixture("cxx-abi").verdicts.torch;
  EXPECT_EQ(bound.abi, TorchAbi::cxx);
  EXPECT_EQ(bound.symbols.size(), 2U);
  const auto newer = read_wheel_fixture("torch-too-new").verdicts.torch;
  EXPECT_EQ(newer.min, "2.13");
  EXPECT_EQ(newer.symbols, std::vector<std::string>{"torch_stream_native_handle"});
  EXPECT_EQ(read_wheel_fixture("torch-symbol-unknown").verdicts.torch.unknown.size(), 1U);
  EXPECT_EQ(read_wheel_fixture("torch").verdicts.torch.abi, TorchAbi::none) << "torch itself";
}

TEST(Verdict, Platform) {
  for (const auto& [wheel, tag] :
       {std::pair{"too-new-platform", "linux_x86_64"}, std::pair{"musl", "musllinux_1_2_x86_64"},
        std::pair{"pure", "any"}, std::pair{"win_amd64", "win_amd64"},
        std::pair{"macosx_11_0_arm64", "macosx_11_0_arm64"}})
    EXPECT_EQ(read_wheel_fixture(wheel).verdicts.platform.tag, tag);
  EXPECT_EQ(read_item(fixture_path("elf/big-endian-32-bit.so"), {})->verdicts.platform.tag,
            "manylinux_2_27_i686");
}

TEST(Verdict, TagsPromise) {
  EXPECT_TRUE(promises_more("manylinux_2_28_x86_64", "linux_x86_64"));
  EXPECT_FALSE(promises_more("linux_x86_64", "manylinux_2_28_x86_64"));
  EXPECT_TRUE(promises_more("manylinux_2_17_x86_64", "musllinux_1_2_x86_64"));
  EXPECT_EQ(architecture_of_tag("any"), "");
}

TEST(Verdict, CudaRuntimesNeedDrivers) {
  const std::array<const char*, 3> wheels[] = {{"dynamic-cudart-13", "13", "580.65.06"},
                                               {"old-cuda", "10.2", "440.33"}};
  for (const auto& [wheel, version, driver] : wheels) {
    const auto cuda = read_wheel_fixture(wheel).verdicts.cuda;
    EXPECT_EQ(cuda.runtime, CudaRuntime::dynamic);
    EXPECT_EQ(cuda.runtime_version, version);
    EXPECT_EQ(cuda.min_driver, driver);
  }
}

TEST(Verdict, OneLibraryPerCudaNeedsTheDriverOfTheOldest) {
  const auto wheel = read_wheel_fixture("one-library-per-cuda");
  EXPECT_EQ(wheel.facts.libraries.front().toolkit, "13.2");
  const auto& cuda = wheel.verdicts.cuda;
  EXPECT_EQ(cuda.runtime_version, "12");
  EXPECT_EQ(cuda.runtime_choices, (std::vector<std::string>{"12", "13"}));
  EXPECT_EQ(cuda.min_driver, "525.60.13");
  auto driver = [&](const char* capability) {
    return std::ranges::find(cuda.gpus, capability, &GpuVerdict::capability)->min_driver;
  };
  EXPECT_EQ(driver("8.0"), "525.60.13");
  EXPECT_EQ(driver("9.0"), "525.60.13");
  EXPECT_EQ(driver("10.0"), "580.65.06") << "only the library for CUDA 13 serves it";
}

TEST(Verdict, Gpus) {
  EXPECT_TRUE(sass_serves("80", "8.6"));
  EXPECT_FALSE(sass_serves("80", "8.7")) << "Jetson takes none but its own";
  EXPECT_FALSE(sass_serves("86", "8.0"));
  EXPECT_FALSE(sass_serves("80", "9.0"));
  EXPECT_TRUE(sass_serves("100f", "10.3"));
  EXPECT_FALSE(sass_serves("100a", "10.3"));
  EXPECT_TRUE(ptx_serves("90", "12.0"));
  EXPECT_FALSE(ptx_serves("90a", "10.0"));
  const auto gpus = read_wheel_fixture("good").verdicts.cuda.gpus;
  const auto b200 = std::ranges::find(gpus, "10.0", &GpuVerdict::capability);
  EXPECT_EQ(b200->served, Served::jit);
  EXPECT_EQ(b200->by, "compute_90");
  EXPECT_EQ(b200->min_driver, "570.26") << "the first that knows the GPU";
}

TEST(Wheel, SameInputSameBytes) {
  const auto document = [] {
    return json_document("items", Json::array({to_json(read_wheel_fixture("record-bad-lines"))}));
  };
  EXPECT_EQ(document(), document());
}

TEST(Parallel, RunsEveryJobWithinTheBudget) {
  const std::vector<std::uint64_t> costs{50, 1, 2, 30, 80, 4, 60, 0};
  std::vector<std::atomic<int>> runs(costs.size());
  std::atomic<std::uint64_t> in_use = 0, most = 0;
  run_within_budget(costs, 100, 4, [&](std::size_t job) {
    const auto now = in_use += costs[job];
    for (auto seen = most.load(); now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    ++runs[job];
    in_use -= costs[job];
  });
  for (const auto& count : runs) EXPECT_EQ(count, 1);
  EXPECT_LE(most, 100U);
}

LibraryFacts library_fixture(const std::string& name) {
  return read_item(fixture_path("elf/" + name), {.symbols = true})->facts.libraries.at(0);
}

std::string target(const std::string& name) {
  return library_fixture(name).device_code.at(0).target;
}

TEST(Library, CubinsKnowTheirTarget) {
  EXPECT_EQ(target("kernel.cubin"), "80");
  EXPECT_EQ(target("kernel-of-cuda-12.cubin"), "90a");
  EXPECT_EQ(target("kernel-accelerated.cubin"), "100a");
  EXPECT_EQ(target("kernel-of-a-family.cubin"), "100f");
}

TEST(Library, KnowsWhomAFileIsFor) {
  EXPECT_EQ(library_fixture("good.so").role, Role::host);
  EXPECT_EQ(library_fixture("kernel.cubin").role, Role::device);
  EXPECT_EQ(library_fixture("kernel.hsaco").role, Role::foreign);
  EXPECT_STREQ(name_of(library_fixture("objects.a").kind), "archive");
  EXPECT_STREQ(name_of(library_fixture("kernel.ptx").kind), "ptx");
  EXPECT_STREQ(name_of(library_fixture("empty-class.so").kind), "broken");
}

TEST(Library, ReadsStaticLibraries) {
  const auto archive = library_fixture("objects.a");
  ASSERT_EQ(archive.device_code.size(), 2U);
  EXPECT_EQ(archive.device_code[1].target, "80");
  EXPECT_TRUE(archive.device_code[1].relocatable);
  EXPECT_EQ(archive.machine, "x86_64");
  const auto damaged = read_item(fixture_path("elf/damaged.a"), {});
  EXPECT_EQ(ids(damaged->findings), Ids{"archive-broken"});
}

TEST(Library, ReadsLoosePtxAndFatBinaries) {
  EXPECT_EQ(target("kernel.ptx"), "90");
  EXPECT_EQ(library_fixture("kernel.ptx").device_code.at(0).isa, "8.4");
  EXPECT_FALSE(read_item(fixture_path("elf/notes.ptx"), {}));
  const auto loose = read_item(fixture_path("fatbin/good.fatbin"), {});
  EXPECT_EQ(loose->verdicts.cuda.sass, (std::vector<std::string>{"75", "100f"}));
  EXPECT_EQ(loose->facts.kind, Facts::Kind::device);
}

TEST(Library, KindsOfCodeThatAreNotJudgedDoNotVanish) {
  const auto codes =
      read_item(fixture_path("fatbin/link-time-code.fatbin"), {})->verdicts.cuda.targets;
  ASSERT_EQ(codes.size(), 2U);
  EXPECT_EQ(codes[0].kind, CodeKind::lto_ir);
  EXPECT_EQ(codes[1].kind, CodeKind::unknown);
}

TEST(Library, AHiddenDefinitionIsNone) {
  for (const auto& symbol : library_fixture("hidden-definition.so").symbols)
    EXPECT_FALSE(symbol.defined);
}

TEST(Library, WhatTheAllowanceDoesNotCoverIsLeftOut) {
  const Fixture file("elf/good.so");
  for (std::uint64_t bytes = 0; bytes < 16000; bytes += 50) {
    Allowance memory(bytes);
    ProblemList problems;
    const auto facts = read_library("x.so", file.bytes(), {.symbols = true}, memory, problems);
    ASSERT_TRUE(facts);
    if (bytes < 2000 || bytes > 12000) {
      EXPECT_EQ(problems.listed.empty(), bytes > 12000) << bytes;
    }
  }
}

}  // namespace
}  // namespace wheelscope
