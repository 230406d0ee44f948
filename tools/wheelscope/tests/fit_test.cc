// Every obstacle between a wheel and a machine is told, and what would have to change.
#include "answers/fit.h"

#include <gtest/gtest.h>

#include "fixture.h"
#include "packaging/supported_tags.h"

namespace wheelscope {
namespace {

MachineFacts machine_with(const std::string& python = "3.13", const std::string& torch = "2.15.0",
                          const std::string& cuda = "13.0") {
  MachineFacts machine{.architecture = "x86_64",
                       .libc = "glibc",
                       .libc_version = "2.36",
                       .driver = "580.65.06",
                       .gpus = {{"NVIDIA H200", "9.0"}}};
  const auto abi = "cp3" + python.substr(2);
  machine.python = {.version = python + ".1", .abi = abi, .architecture = "x86_64"};
  machine.python->tags =
      supported_tags(python, abi, {.architecture = "x86_64", .libc_version = "2.36"});
  if (!torch.empty()) machine.torch = {.version = torch, .cuda = cuda};
  return machine;
}

FitVerdict verdict(const std::string& wheel, const MachineFacts& machine,
                   const Surroundings& surroundings = {}) {
  return fit(read_wheel_fixture(wheel, {.symbols = true}), machine, surroundings);
}

TEST(Fit, SaysThatItWorks) {
  const auto good = verdict("good", machine_with());
  EXPECT_EQ(good.fits, Fits::works) << good.reason;
  EXPECT_FALSE(good.in_part);
  ASSERT_EQ(good.notes.size(), 1U);
  EXPECT_EQ(good.notes.front().substr(0, 21), "NVIDIA H200: native, ");
}

TEST(Fit, TellsTheObstacle) {
  auto check = [](const FitVerdict& verdict, Obstacle obstacle, const std::string& reason) {
    EXPECT_EQ(verdict.fits, Fits::fails);
    EXPECT_STREQ(name_of(verdict.obstacle), name_of(obstacle));
    EXPECT_EQ(verdict.reason, reason);
  };
  auto arm = machine_with();
  arm.architecture = "aarch64";
  arm.python->tags = {"cp313-cp313-linux_aarch64"};
  check(verdict("good", arm), Obstacle::system, "it is not for aarch64");
  check(verdict("one-python", machine_with()), Obstacle::python, "its tag is not for Python 3.13");
  check(verdict("good", machine_with("3.9")), Obstacle::python, "it requires Python >=3.10");
  check(verdict("abi3", machine_with("3.10")), Obstacle::python,
        "PyObject_GetBuffer exists since Python 3.11");
  check(verdict("good", machine_with("3.13", "2.9.1")), Obstacle::torch,
        "it requires torch>=2.10; torch 2.9.1 is here");
  check(verdict("cxx-abi-of-2.15", machine_with("3.13", "2.14.0")), Obstacle::torch,
        "it is bound to the C++ ABI of torch 2.15");
  check(verdict("dynamic-cudart-13", machine_with("3.13", "2.15.0", "12.8")), Obstacle::cuda,
        "_C.so needs libcudart.so.13; torch brings CUDA 12.8");
  auto old_driver = machine_with();
  old_driver.driver = "535.54.03";
  check(verdict("dynamic-cudart-13", old_driver), Obstacle::driver,
        "it needs driver 580.65.06; 535.54.03 is here");
}

TEST(Fit, ARuntimeWhoseVersionWasNotRead) {
  auto wheel = read_wheel_fixture("good", {.symbols = true});
  auto& library = wheel.facts.libraries.front();
  library.in_part = true;
  library.cudart_version = "";
  wheel.verdicts = judge(wheel.facts);
  const auto newest = fit(wheel, machine_with(), {});
  EXPECT_EQ(newest.fits, Fits::works) << newest.reason;
  EXPECT_EQ(newest.notes.front(),
            "whether it has code for the GPUs here was not looked at: --deep tells");
  auto machine = machine_with();
  machine.driver = "535.54.03";
  const auto older = fit(wheel, machine, {});
  EXPECT_EQ(older.fits, Fits::depends);
  EXPECT_EQ(older.obstacle, Obstacle::driver);
  EXPECT_TRUE(older.reason.ends_with("not known without --deep; 535.54.03 is here"))
      << older.reason;
}

TEST(Fit, AnOldSystem) {
  auto old = machine_with();
  old.libc_version = "2.5";
  const auto found = verdict("good", old);
  EXPECT_EQ(found.obstacle, Obstacle::system);
  EXPECT_TRUE(found.reason.starts_with("it needs glibc ")) << found.reason;
  old.python->tags = {"cp313-cp313-linux_x86_64"};
  EXPECT_EQ(verdict("good", old).change, "another system");
}

TEST(Fit, AnOldCxxLibraryIsLikelyBesideAnOldCLibrary) {
  auto wheel = read_wheel_fixture("good", {.symbols = true});
  wheel.facts.libraries.front().version_needs["libstdc++.so.6"] = {"GLIBCXX_3.4.29"};
  auto machine = machine_with();
  EXPECT_EQ(fit(wheel, machine, {}).fits, Fits::works);
  machine.libc_version = "2.31";
  const auto found = fit(wheel, machine, {});
  EXPECT_EQ(found.fits, Fits::depends);
  EXPECT_TRUE(
      found.reason.ends_with(" needs GLIBCXX_3.4.29 of libstdc++.so.6, which a system with "
                             "glibc 2.31 need not have"))
      << found.reason;
}

TEST(Fit, AGpuWithoutCode) {
  auto machine = machine_with();
  machine.gpus = {{"Tesla T4", "7.5"}};
  const auto found = verdict("good", machine);
  EXPECT_EQ(found.obstacle, Obstacle::gpu);
  EXPECT_NE(found.reason.find("has no code for Tesla T4 (7.5)"), std::string::npos) << found.reason;
}

TEST(Fit, WithoutTorch) {
  const auto none = verdict("cxx-abi", machine_with("3.13", ""));
  EXPECT_NE(none.fits, Fits::works);
  EXPECT_EQ(none.obstacle, Obstacle::torch);
}

TEST(Fit, AsksTheTorchThatIsHere) {
  Surroundings surroundings;
  surroundings.torch_has = [](const std::string&) { return true; };
  EXPECT_NE(verdict("cxx-abi", machine_with(), surroundings).obstacle, Obstacle::torch);
  surroundings.torch_has = [](const std::string&) { return false; };
  const auto found = verdict("cxx-abi", machine_with(), surroundings);
  EXPECT_EQ(found.obstacle, Obstacle::torch);
  EXPECT_NE(found.reason.find("which torch 2.15.0 here does not have"), std::string::npos);
}

TEST(Fit, ModulesBeyondTheLimitedApiDependOnThePython) {
  auto wheel = read_wheel_fixture("abi3", {.symbols = true});
  wheel.facts.libraries.front().python_symbols = {{"_PyPrivate_Thing", true}};
  wheel.verdicts = judge(wheel.facts);
  wheel.facts.wheel->file_name_tags = {"cp310-abi3-manylinux_2_28_x86_64"};
  wheel.verdicts.python.abi = PythonAbi::version;
  wheel.verdicts.python.versions = {"3.10"};
  const auto unknown = fit(wheel, machine_with(), {});
  EXPECT_EQ(unknown.fits, Fits::depends) << unknown.reason;
  Surroundings surroundings;
  surroundings.python_has = [](const std::string& name) { return name == "_PyPrivate_Thing"; };
  EXPECT_NE(fit(wheel, machine_with(), surroundings).obstacle, Obstacle::python);
  surroundings.python_has = [](const std::string&) { return false; };
  EXPECT_EQ(fit(wheel, machine_with(), surroundings).fits, Fits::fails);
}

TEST(Fit, AModuleOfAnotherPythonAmongOthers) {
  auto wheel = read_wheel_fixture("abi3", {.symbols = true});
  auto other = wheel.facts.libraries.front();
  other.path = "pkg/other.cpython-310-x86_64-linux-gnu.so";
  wheel.facts.libraries.push_back(other);
  wheel.facts.wheel->file_name_tags = {"cp310-abi3-manylinux_2_28_x86_64"};
  wheel.verdicts = judge(wheel.facts);
  const auto found = fit(wheel, machine_with(), {});
  EXPECT_EQ(found.fits, Fits::depends);
  EXPECT_EQ(
      found.reason,
      "other.cpython-310-x86_64-linux-gnu.so is for another Python; other modules are for any");
}

TEST(Fit, TheNearestIsTheLastToFail) {
  const std::vector<FitVerdict> verdicts{
      {.file = "a", .fits = Fits::fails, .obstacle = Obstacle::python},
      {.file = "b", .fits = Fits::fails, .obstacle = Obstacle::driver},
      {.file = "c", .fits = Fits::fails, .obstacle = Obstacle::system}};
  EXPECT_EQ(nearest_of(verdicts)->file, "b");
  EXPECT_EQ(best_of(verdicts), nullptr);
  EXPECT_EQ(nearest_of({}), nullptr);
}

TEST(Fit, ALoneLibraryIsNoWheel) {
  EXPECT_EQ(fit(Item{}, machine_with(), {}).reason, "it is not a wheel");
}

}  // namespace
}  // namespace wheelscope
