// Every reason why a wheel does not serve a user is reported, and wheels serve users for the right
// reason.
#include "answers/cover.h"

#include <gtest/gtest.h>

#include <tuple>

#include "fixture.h"
#include "report/text.h"

namespace wheelscope {
namespace {

const Cell usual{"x86_64", "2.15", "13.0", "3.13"};

TEST(Cover, OneWheelServesEveryCell) {
  const auto good = read_wheel_fixture("good");
  for (const auto* cuda : {"12.6", "13.2", "cpu"}) {
    for (const auto* python : {"3.10", "3.14t", "3.15"})
      EXPECT_EQ(reason_text(why_not(good, {"x86_64", "2.10", cuda, python})), "");
  }
}

TEST(Cover, TellsTheReason) {
  const std::tuple<const char*, Cell, const char*> users[] = {
      {"good", {"aarch64", "2.15", "13.0", "3.13"}, "it is not for aarch64"},
      {"good", {"x86_64", "2.15", "13.0", "3.9"}, "it requires Python >=3.10"},
      {"good", {"x86_64", "2.9", "13.0", "3.13"}, "it needs torch 2.10 for torch_call_dispatcher"},
      {"one-python", usual, "its tag is not for Python 3.13"},
      {"abi3", {"x86_64", "2.15", "13.0", "3.10"}, "PyObject_GetBuffer exists since Python 3.11"},
      {"abi3", {"x86_64", "2.15", "13.0", "3.13t"}, "its tag is not for Python 3.13t"},
      {"abi3", usual, ""},
      {"cxx-abi", usual, "it is bound to torch's C++ ABI and does not say of which torch"},
      {"cxx-abi-of-2.15",
       {"x86_64", "2.14", "13.0", "3.13"},
       "it is bound to the C++ ABI of torch 2.15"},
      {"cxx-abi-of-2.15", usual, ""},
      {"torch-symbol-unknown", usual, "no known torch has torch_no_such_function"},
      {"no-device-code", usual, "it has no device code"},
      {"dynamic-cudart-13",
       {"x86_64", "2.15", "12.6", "3.13"},
       "it needs libcudart.so.13; torch brings CUDA 12.6"},
      {"dynamic-cudart-13",
       {"x86_64", "2.15", "cpu", "3.13"},
       "pkg/_C.so needs libcudart.so.13, which a CPU build of torch lacks"},
      {"needs-cuda-shim",
       {"x86_64", "2.15", "cpu", "3.13"},
       "pkg/_C.so needs aoti_torch_get_current_cuda_stream, which a CPU build of torch lacks"},
      {"one-library-per-cuda", {"x86_64", "2.15", "12.6", "3.13"}, ""},
      {"one-library-per-cuda", usual, ""},
      {"macosx_11_0_arm64",
       {"x86_64", "2.15", "cpu", "3.11"},
       "it is for another system: macosx_11_0_arm64"},
      {"musl", usual, "it is for musl, not for glibc"}};
  for (const auto& [wheel, cell, why] : users)
    EXPECT_EQ(reason_text(why_not(read_wheel_fixture(wheel), cell)), why) << wheel;
  EXPECT_EQ(reason_text(why_not(Item{}, usual)), "it is not a wheel");
}

TEST(Cover, AWheelForOnePythonUsesWhatThatOneHas) {
  auto wheel = read_wheel_fixture("abi3");
  wheel.facts.wheel->file_name_tags = {"cp310-cp310-manylinux_2_28_x86_64"};
  EXPECT_EQ(reason_text(why_not(wheel, {"x86_64", "2.15", "13.0", "3.10"})), "");
}

TEST(Cover, RequirementsCountWhereTheirMarkersHold) {
  auto wheel = read_wheel_fixture("good");
  auto& requires_dist = wheel.facts.wheel->requires_dist;
  const Cell cell{"x86_64", "2.14", "13.0", "3.13"};
  requires_dist = {"torch==2.14.1"};
  EXPECT_EQ(reason_text(why_not(wheel, cell)), "") << "2.14 stands for all of its releases";
  requires_dist = {"torch==2.13.*"};
  EXPECT_EQ(reason_text(why_not(wheel, cell)), "it requires torch==2.13.*");
  requires_dist = {"torch==2.13; extra == 'old'", "torch<2; python_version < '3.9'"};
  EXPECT_EQ(reason_text(why_not(wheel, cell)), "");
}

TEST(Cover, StaticRuntimeServesLaterCudaOnly) {
  auto wheel = read_wheel_fixture("good");
  wheel.verdicts.cuda.runtime = CudaRuntime::linked_statically;
  EXPECT_EQ(reason_text(why_not(wheel, usual)), "the version of its CUDA runtime cannot be told");
  wheel.verdicts.cuda.runtime_version = "12.9";
  EXPECT_EQ(reason_text(why_not(wheel, usual)), "");
  EXPECT_EQ(reason_text(why_not(wheel, {"x86_64", "2.10", "12.6", "3.13"})), "");
  wheel.verdicts.cuda.runtime_version = "13.0";
  EXPECT_EQ(reason_text(why_not(wheel, {"x86_64", "2.10", "12.6", "3.13"})),
            "its CUDA 13.0 runtime needs a newer driver than CUDA 12.6");
}

TEST(Cover, ReadsTheMatrix) {
  const auto cells = parse_matrix(R"(
    [arch.x86_64]
    [torch."2.10"]
    cuda = ["12.6", "cpu"]
    pythons = ["3.10", "3.14t"]
    [torch."2.9"]
    cuda = ["cpu"]
    pythons = ["3.10"])")
                         .value();
  ASSERT_EQ(cells.size(), 5U);
  EXPECT_EQ(cells[0].torch, "2.9");
  EXPECT_EQ(cells[4].python, "3.14t");
}

TEST(Cover, RefusesABadMatrix) {
  EXPECT_FALSE(parse_matrix("x = "));
  EXPECT_FALSE(parse_matrix("[arch.x86_64]"));
  EXPECT_FALSE(parse_matrix("[arch.x86_64]\n[torch.'2.10']\ncuda = ['cpu']"));
}

TEST(Cover, TakesTheFirstWheelThatServes) {
  const std::vector<Item> wheels{read_wheel_fixture("dynamic-cudart-13"),
                                 read_wheel_fixture("good")};
  const auto verdicts =
      cover(wheels, {usual, {"x86_64", "2.15", "cpu", "3.13"}, {"arm", "2.15", "cpu", "3.13"}});
  EXPECT_EQ(verdicts[0].wheel, wheels[0].facts.file);
  EXPECT_EQ(verdicts[1].wheel, wheels[1].facts.file);
  EXPECT_EQ(verdicts[2].wheel, "");
  EXPECT_EQ(verdicts[2].reasons.size(), 2U);
}

}  // namespace
}  // namespace wheelscope
