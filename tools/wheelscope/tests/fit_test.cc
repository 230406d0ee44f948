// Every obstacle between a wheel and a machine is reported, with what would have to change.
#include "answers/fit.h"

#include <gtest/gtest.h>

#include "fixture.h"
#include "packaging/tag.h"
#include "report/text.h"

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
                   const Lookups& lookups = {}) {
  return fit(read_wheel_fixture(wheel, {.symbols = true}), machine, lookups);
}

TEST(Fit, SaysThatItWorks) {
  const auto good = verdict("good", machine_with());
  EXPECT_EQ(good.fits, Fits::works) << reason_text(good.reason);
  EXPECT_FALSE(good.in_part);
  ASSERT_EQ(good.notes.size(), 1U);
  EXPECT_EQ(good.notes.front().substr(0, 21), "NVIDIA H200: native, ");
}

TEST(Fit, TellsTheObstacle) {
  auto check = [](const FitVerdict& verdict, Obstacle obstacle, const std::string& reason) {
    EXPECT_EQ(verdict.fits, Fits::fails);
    EXPECT_STREQ(name_of(verdict.obstacle), name_of(obstacle));
    EXPECT_EQ(reason_text(verdict.reason), reason);
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

TEST(Fit, AnOldSystem) {
  auto old = machine_with();
  old.libc_version = "2.5";
  const auto found = verdict("good", old);
  EXPECT_EQ(found.obstacle, Obstacle::system);
  EXPECT_EQ(found.reason.why, Why::newer_glibc);
  old.python->tags = {"cp313-cp313-linux_x86_64"};
  EXPECT_EQ(change_text(verdict("good", old).reason), "another system");
}

TEST(Fit, AnOldCxxLibraryIsLikelyBesideAnOldCLibrary) {
  auto wheel = read_wheel_fixture("good", {.symbols = true});
  wheel.facts.libraries.front().version_needs["libstdc++.so.6"] = {"GLIBCXX_3.4.29"};
  auto machine = machine_with();
  EXPECT_EQ(fit(wheel, machine, {}).fits, Fits::works);
  machine.libc_version = "2.31";
  const auto found = fit(wheel, machine, {});
  EXPECT_EQ(found.fits, Fits::depends);
  EXPECT_TRUE(reason_text(found.reason)
                  .ends_with(" needs GLIBCXX_3.4.29 of libstdc++.so.6, which a system with "
                             "glibc 2.31 need not have"));
}

TEST(Fit, AGpuWithoutCode) {
  auto machine = machine_with();
  machine.gpus = {{"Tesla T4", "7.5"}};
  const auto found = verdict("good", machine);
  EXPECT_EQ(found.obstacle, Obstacle::gpu);
  EXPECT_EQ(found.reason.what, "Tesla T4");
}

TEST(Fit, WithoutTorch) {
  const auto none = verdict("cxx-abi", machine_with("3.13", ""));
  EXPECT_NE(none.fits, Fits::works);
  EXPECT_EQ(none.obstacle, Obstacle::torch);
}

TEST(Fit, AsksTheTorchThatIsHere) {
  Lookups lookups;
  lookups.torch_has = [](const std::string&) { return true; };
  EXPECT_EQ(verdict("cxx-abi", machine_with(), lookups).reason.why, Why::torch_layout);
  lookups.torch_has = [](const std::string&) { return false; };
  const auto found = verdict("cxx-abi", machine_with(), lookups);
  EXPECT_EQ(found.obstacle, Obstacle::torch);
  EXPECT_EQ(found.reason.why, Why::torch_symbol);
  EXPECT_EQ(found.reason.here, "2.15.0");
}

TEST(Fit, ModulesBeyondTheLimitedApiDependOnThePython) {
  auto wheel = read_wheel_fixture("abi3", {.symbols = true});
  wheel.facts.libraries.front().python_symbols = {{"_PyPrivate_Thing", true}};
  wheel.verdicts = judge(wheel.facts);
  wheel.facts.wheel->file_name_tags = {"cp310-abi3-manylinux_2_28_x86_64"};
  wheel.verdicts.python.abi = PythonAbi::version;
  wheel.verdicts.python.versions = {"3.10"};
  const auto unknown = fit(wheel, machine_with(), {});
  EXPECT_EQ(unknown.fits, Fits::depends) << reason_text(unknown.reason);
  Lookups lookups;
  lookups.python_has = [](const std::string& name) { return name == "_PyPrivate_Thing"; };
  EXPECT_NE(fit(wheel, machine_with(), lookups).obstacle, Obstacle::python);
  lookups.python_has = [](const std::string&) { return false; };
  EXPECT_EQ(fit(wheel, machine_with(), lookups).fits, Fits::fails);
  wheel.verdicts.platform.external_libraries = {"libelsewhere.so.1"};  // may have the symbol
  wheel.facts.libraries.front().needed.push_back("libelsewhere.so.1");
  lookups.required_wheels = [](const std::string&) { return Brought::yes; };
  const auto brought = fit(wheel, machine_with(), lookups);
  EXPECT_EQ(brought.fits, Fits::works) << reason_text(brought.reason);
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
      reason_text(found.reason),
      "other.cpython-310-x86_64-linux-gnu.so is for another Python; other modules are for any");
}

// A wheel with modules that need a library from elsewhere, and its Python code.
Item with_missing_library(const std::string& path = "pkg/_C.so") {
  auto wheel = read_wheel_fixture("abi3", {.symbols = true});
  auto& library = wheel.facts.libraries.front();
  library.path = path;
  library.needed.push_back("libelsewhere.so.1");
  wheel.verdicts = judge(wheel.facts);
  return wheel;
}

Lookups bringing(Brought brought) {
  Lookups lookups;
  lookups.system_library = [](const std::string&) { return nullptr; };
  lookups.required_wheels = [brought](const std::string& name) {
    return name == "libelsewhere.so.1" ? brought : Brought::no;
  };
  return lookups;
}

TEST(Fit, ARequiredWheelBringsTheLibrary) {
  const auto wheel = with_missing_library();
  EXPECT_EQ(fit(wheel, machine_with(), bringing(Brought::yes)).fits, Fits::works);
  const auto none = fit(wheel, machine_with(), bringing(Brought::no));
  EXPECT_EQ(none.fits, Fits::fails);
  EXPECT_EQ(none.reason.why, Why::library_absent);
  EXPECT_EQ(fit(wheel, machine_with(), bringing(Brought::unknown)).fits, Fits::depends);
}

TEST(Fit, OnlyWhatAnImportOpensMustLoad) {
  const auto wheel = with_missing_library();
  auto fits = [&](const std::string& code) {
    auto lookups = bringing(Brought::no);
    const auto machine = machine_with();
    const WheelFiles files{.names = {"pkg/__init__.py", "pkg/_C.so"},
                           .read = [&](const std::string&) { return std::optional(code); }};
    const WheelImports imports(*machine.python, files);
    lookups.imports = [&] { return &imports; };
    return fit(wheel, machine, lookups).fits;
  };
  EXPECT_EQ(fits("from . import _C\n"), Fits::fails);
  EXPECT_EQ(fits("if x:\n  from . import _C\n"), Fits::depends);
  EXPECT_EQ(fits("try:\n  from . import _C\nexcept ImportError:\n  pass\n"), Fits::works);
  EXPECT_EQ(fits("def f():\n  from . import _C\n"), Fits::works);
}

TEST(Fit, AFileThatIsImportedMustBeAModule) {
  auto wheel = read_wheel_fixture("abi3", {.symbols = true});
  auto& library = wheel.facts.libraries.front();
  library.path = "pkg/_C.abi3.so";
  auto fits = [&](const std::string& code, bool is_module) {
    library.python_module = is_module;
    const auto machine = machine_with();
    const WheelFiles files{.names = {"pkg/__init__.py", "pkg/_C.abi3.so"},
                           .read = [&](const std::string&) { return std::optional(code); }};
    const WheelImports imports(*machine.python, files);
    Lookups lookups;
    lookups.imports = [&] { return &imports; };
    return fit(wheel, machine, lookups).reason.why == Why::python_no_init;
  };
  EXPECT_TRUE(fits("from ._C import *\n", false));
  EXPECT_FALSE(fits("from ._C import *\n", true));
  EXPECT_FALSE(fits("import ctypes\nctypes.CDLL('_C.abi3.so')\n", false)) << "it is opened";
  EXPECT_FALSE(fits("try:\n  from ._C import *\nexcept ImportError:\n  pass\n", false));
}

TEST(Fit, OneOfSeveralLibrariesIsEnough) {
  auto wheel = with_missing_library("pkg/libwork_cuda12.so");
  auto& first = wheel.facts.libraries.front();
  first.python_module = false;
  auto other = first;
  other.path = "pkg/libwork_cpu.so";
  std::erase(other.needed, "libelsewhere.so.1");
  EXPECT_NE(fit(wheel, machine_with(), bringing(Brought::no)).fits, Fits::works);
  wheel.facts.libraries.push_back(other);
  EXPECT_EQ(fit(wheel, machine_with(), bringing(Brought::no)).fits, Fits::works);
}

TEST(Fit, OneOfSeveralModulesMustLoad) {
  auto wheel = with_missing_library("pkg/MPI.mpich.cpython-313-x86_64-linux-gnu.so");
  const auto machine = machine_with();
  const WheelFiles files{.names = {"pkg/__init__.py"},
                         .read = [](const std::string&) { return std::optional<std::string>(""); }};
  const WheelImports imports(*machine.python, files);
  auto lookups = bringing(Brought::no);
  lookups.imports = [&] { return &imports; };
  EXPECT_EQ(fit(wheel, machine, lookups).fits, Fits::depends);
  auto other = wheel.facts.libraries.front();
  other.path = "pkg/MPI.openmpi.cpython-313-x86_64-linux-gnu.so";
  std::erase(other.needed, "libelsewhere.so.1");
  wheel.facts.libraries.push_back(other);
  EXPECT_EQ(fit(wheel, machine, lookups).fits, Fits::works);
}

TEST(Fit, NumpyMustBeTheOneThatModulesWereBuiltFor) {
  auto wheel = read_wheel_fixture("abi3", {.symbols = true});
  Lookups lookups;
  std::string version;
  lookups.numpy = [&] { return std::vector<MetNumpy>{{version}}; };
  auto why = [&](NumpyApi api, const std::string& numpy) {
    version = numpy;
    wheel.facts.libraries.front().numpy = std::move(api);
    const auto found = fit(wheel, machine_with(), lookups);
    EXPECT_EQ(found.fits == Fits::fails, found.obstacle == Obstacle::numpy);
    return found.reason.why;
  };
  EXPECT_EQ(why({.one = true}, "1.26.4"), Why::none);
  EXPECT_EQ(why({.one = true}, "2.0.0"), Why::numpy_one);
  EXPECT_EQ(why({.one = true}, "2.0.0rc1"), Why::numpy_one);
  EXPECT_EQ(why({.one = true, .two = true}, "2.3.5"), Why::none);
  EXPECT_EQ(why({.one = true, .two = true, .min = "1.23"}, "1.22.4"), Why::numpy_older);
  EXPECT_EQ(why({.two = true}, "1.26.4"), Why::numpy_two);
  EXPECT_EQ(why({.one = true, .two = true}, ""), Why::numpy_absent);
}

TEST(Fit, TorchItselfNeedsNoTorch) {
  auto wheel = read_wheel_fixture("cxx-abi", {.symbols = true});
  EXPECT_EQ(fit(wheel, machine_with("3.13", ""), {}).obstacle, Obstacle::torch);
  wheel.facts.wheel->name = "Torch";
  EXPECT_NE(fit(wheel, machine_with("3.13", ""), {}).obstacle, Obstacle::torch);
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
  EXPECT_EQ(fit(Item{}, machine_with(), {}).reason.why, Why::not_a_wheel);
}

}  // namespace
}  // namespace wheelscope
