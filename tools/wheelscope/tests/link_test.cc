// Linking finds what the loader would find, and names what it would miss. Comparing finds what
// changed.
#include "answers/link.h"

#include <gtest/gtest.h>

#include "answers/diff.h"
#include "fixture.h"

namespace wheelscope {
namespace {

constexpr ScanOptions with_symbols{.symbols = true};

LinkReport linked(const std::string& wheel, const std::string& torch) {
  return link(read_wheel_fixture(wheel, with_symbols), {read_wheel_fixture(torch, with_symbols)});
}

TEST(Link, ResolvesThroughTheNeededTree) {
  const auto report = linked("good", "torch");
  EXPECT_TRUE(report.missing.empty());
  EXPECT_TRUE(report.missing_libraries.empty());
  EXPECT_EQ(report.resolved.at("libtorch_cpu.so"), 1U) << "libtorch.so leads there";
  EXPECT_EQ(report.platform, 2U);
  EXPECT_EQ(report.weak, 1U);
}

TEST(Link, NamesWhatAnOlderTorchLacks) {
  const auto report = linked("good", "torch-too-old");
  ASSERT_EQ(report.missing.size(), 1U);
  EXPECT_EQ(report.missing[0].symbol, "torch_call_dispatcher");
  EXPECT_EQ(report.missing[0].expected_in, "libtorch_cpu.so");
}

TEST(Link, DemanglesTheSymbolsOfAnotherTorch) {
  const auto report = linked("cxx-abi", "torch");
  ASSERT_EQ(report.missing.size(), 2U);
  EXPECT_EQ(report.missing[1].demangled, "c10::Error::Error(std::string)");
  EXPECT_EQ(report.missing[1].expected_in, "libc10.so");
  EXPECT_EQ(report.missing[0].expected_in, "libtorch_cpu.so");
}

TEST(Link, MissesWholeLibraries) {
  const auto report = linked("dynamic-cudart-13", "torch");
  EXPECT_EQ(report.missing_libraries.at("libcudart.so.13"), std::set<std::string>{"pkg/_C.so"});
}

Item one_library(LibraryFacts library) {
  Item item;
  item.facts.libraries.push_back(std::move(library));
  return item;
}

TEST(Link, KeepsToVersionsAndScope) {
  const auto provider =
      one_library({.path = "libv.so.1",
                   .version_definitions = {"V_2"},
                   .symbols = {{.name = "f", .version = "V_2", .defined = true}}});
  auto user = [&](const char* version, std::vector<std::string> needed) {
    return link(one_library({.path = "user.so",
                             .needed = std::move(needed),
                             .symbols = {{.name = "f", .version = version}}}),
                {provider});
  };
  EXPECT_TRUE(user("V_2", {"libv.so.1"}).missing.empty());
  EXPECT_EQ(user("V_1", {"libv.so.1"}).missing.at(0).why, "the library has it in another version");
  EXPECT_EQ(user("V_2", {}).missing.at(0).why,
            "libv.so.1 has it, but nothing that this library NEEDs leads there");
}

TEST(Link, FollowsRunpathAndNothingElse) {
  const auto led = link(read_wheel_fixture("runpath-leads-to-a-library", with_symbols), {});
  EXPECT_TRUE(led.missing_libraries.empty());
  EXPECT_TRUE(led.missing.empty());
  EXPECT_EQ(led.resolved.at("libinner.so"), 1U);
  const auto lost = link(read_wheel_fixture("nothing-leads-to-a-library", with_symbols), {});
  EXPECT_EQ(lost.missing_libraries.at("libinner.so"), std::set<std::string>{"pkg/_C.so"});
  EXPECT_TRUE(has(lost.missing_reasons.at("libinner.so"), "no RPATH or RUNPATH leads there"));
  ASSERT_EQ(lost.missing.size(), 1U);
  EXPECT_EQ(lost.missing[0].symbol, "inner");
}

TEST(Link, LeavesTheDriverAndTheCLibraryTheirSymbols) {
  const auto report =
      link(read_wheel_fixture("driver-and-libc-without-versions", with_symbols), {});
  EXPECT_EQ(report.driver, 1U);
  EXPECT_EQ(report.platform, 3U);
  EXPECT_TRUE(report.missing.empty());
  EXPECT_TRUE(report.missing_libraries.empty());
}

TEST(Link, TakesNoLibraryOfAnotherMachine) {
  const auto report = linked("aarch64", "torch");
  EXPECT_TRUE(report.missing_libraries.contains("libtorch.so"));
  EXPECT_EQ(report.missing_reasons.at("libtorch.so"), "torch/lib/libtorch.so is for x86_64");
  EXPECT_FALSE(report.missing.empty());
}

TEST(Link, LeavesInterpreterAndRuntimeSymbolsToThem) {
  const auto report = link(one_library({.path = "user.so",
                                        .needed = {"libstdc++.so.6"},
                                        .symbols = {{.name = "PyList_New"},
                                                    {.name = "_ZNSt13runtime_errorD1Ev"},
                                                    {.name = "nowhere"}}}),
                           {});
  EXPECT_EQ(report.python, 1U);
  EXPECT_EQ(report.platform, 1U);
  EXPECT_EQ(report.missing.at(0).symbol, "nowhere");
}

TEST(Link, GuessesTheLibraryByNamespace) {
  for (const auto& [symbol, library] : {std::pair{"_ZN3c104cuda9SetDeviceEa", "libc10_cuda.so"},
                                        std::pair{"_ZN2at4cuda4x", "libtorch_cuda.so"},
                                        std::pair{"THPVariable_Wrap", "libtorch_python.so"},
                                        std::pair{"torch_new_thing", "libtorch_cpu.so"}}) {
    EXPECT_EQ(link(one_library({.path = "u.so", .symbols = {{.name = symbol}}}), {})
                  .missing.at(0)
                  .expected_in,
              library);
  }
}

std::map<std::string, Change> changes(const std::string& before, const std::string& after) {
  std::map<std::string, Change> found;
  for (auto& change :
       diff(read_wheel_fixture(before, with_symbols), read_wheel_fixture(after, with_symbols), 1))
    found.emplace(change.subject, change);
  return found;
}

TEST(Diff, FindsNothingInTheSameWheel) {
  EXPECT_TRUE(changes("good", "good").empty());
}

TEST(Diff, TellsWhatChangedForUsers) {
  const auto cuda = changes("good", "dynamic-cudart-13");
  EXPECT_EQ(cuda.at("CUDA runtime").after, "dynamic 13");
  EXPECT_EQ(cuda.at("oldest driver").after, "580.65.06");
  EXPECT_EQ(cuda.at("pkg/_C.so: NEEDED").after, "libcudart.so.13");
  const auto code = changes("good", "no-device-code");
  EXPECT_EQ(code.at("SASS").before, "80, 90a");
  EXPECT_EQ(code.at("GPUs served").after, "");
  EXPECT_EQ(code.at("size of device code").after, "0");
  const auto torch = changes("good", "cxx-abi");
  EXPECT_EQ(torch.at("torch ABI").after, "cxx");
  EXPECT_TRUE(has(torch.at("pkg/_C.so: needs").after, "and 1 more"));
  EXPECT_EQ(changes("good", "abi3").at("library").after, "pkg/_C.abi3.so");
}

}  // namespace
}  // namespace wheelscope
