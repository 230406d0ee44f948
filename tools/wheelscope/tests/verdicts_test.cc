// Tests what facts mean for a user: GPUs by the weakest library, NumPy by the texts of its headers,
// and the Pythons that load a wheel's modules. test_env_files.py asks NumPy itself.
#include "verdicts/verdicts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "answers/cover.h"
#include "facts/wheel.h"
#include "findings/findings.h"
#include "fixture.h"
#include "report/text.h"
#include "text/text.h"

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

LibraryFacts library(const std::string& name) {
  const auto bytes = read_text(fixture_path("elf/" + name));
  EXPECT_TRUE(bytes) << name;
  auto facts = read_lone_file(name, Bytes(std::as_bytes(std::span(*bytes))));
  return facts ? facts->libraries.front() : LibraryFacts{};
}

NumpyVerdict judged(const std::vector<std::string>& names) {
  std::vector<LibraryFacts> libraries;
  for (const auto& name : names) libraries.push_back(library(name));
  return judge_numpy(libraries);
}

TEST(NumpyAbi, IsToldByTheHeadersTexts) {
  EXPECT_EQ(judged({"numpy-1.so"}).abi, NumpyAbi::one);
  EXPECT_EQ(judged({"numpy-1-after-a-number.so"}).abi, NumpyAbi::one) << "no NUL before it";
  EXPECT_EQ(judged({"numpy-1-after-a-text.so"}).abi, NumpyAbi::one) << "of 16 bytes";
  EXPECT_EQ(judged({"numpy-1.15.so"}).abi, NumpyAbi::one);
  EXPECT_EQ(judged({"numpy-of-pybind11.so"}).abi, NumpyAbi::none);
  EXPECT_EQ(judged({"numpy-1-types.so"}).abi, NumpyAbi::one) << "Cython, without the API";
  EXPECT_EQ(judged({"numpy-2-types.so"}).abi, NumpyAbi::none) << "it runs beside both";
  EXPECT_EQ(judged({"numpy-2.so"}).abi, NumpyAbi::both);
  EXPECT_EQ(judged({"numpy-2.so"}).min, "1.23");
  EXPECT_EQ(judged({"numpy-2-only.so"}).abi, NumpyAbi::two);
  EXPECT_TRUE(library("numpy-1-cython.so").numpy->checks_sizes);
  EXPECT_FALSE(library("numpy-1.so").numpy->checks_sizes);
}

TEST(NumpyAbi, IsNotToldByTheSameWordsElsewhere) {
  for (const auto* name :
       {"numpy-mentioned.so", "numpy-pickled.so", "numpy-no-capsules.so", "good.so"})
    EXPECT_EQ(judged({name}).abi, NumpyAbi::none) << name;
}

TEST(NumpyAbi, OneOldModuleBindsTheWheel) {
  const auto verdict = judged({"numpy-2.so", "numpy-1.so", "good.so"});
  EXPECT_EQ(verdict.abi, NumpyAbi::one);
  EXPECT_EQ(verdict.libraries, std::vector<std::string>{"numpy-1.so"});
}

using Strings = std::vector<std::string>;

Ids checked(const std::string& wheel) {
  auto findings = check(read_wheel_fixture(wheel), {});
  std::erase_if(findings, [](const Finding& f) { return f.level != Finding::Level::error; });
  return ids(findings);
}

// Returns the kind of modules, the oldest Python and, where each is for one, the Pythons.
std::string told(const PythonVerdict& python) {
  auto words = Strings{name_of(python.abi), python.min.value_or("?")};
  words.insert(words.end(), python.versions.begin(), python.versions.end());
  return joined(words, " ");
}

TEST(PythonAbi, OfEachWheelAndItsTag) {
  const std::tuple<const char*, const char*, Ids> wheels[] = {
      {"abi3", "abi3 3.11", {"tag-python"}},  // tagged cp310
      {"one-python", "version 3.11 3.11", {}},
      {"one-python-unnamed", "version 3.12 3.12", {}},  // from the tag
      {"one-python-tagged-none", "version ?", {"tag-python"}},
      {"several-pythons", "version 3.10 3.10 3.11 3.12", {}},
      {"several-pythons-and-later-ones", "version 3.10 3.10 3.11 3.12", {}},  // 3.13 came later
      {"several-pythons-not-the-oldest", "version 3.10 3.10 3.11 3.12", {"tag-python"}},
      {"abi3-of-a-newer-python", "abi3 3.11", {"tag-python"}},
      {"abi3-with-requires-python", "abi3 3.11", {}},  // no older Python gets it
      {"bindings-inside", "abi3 3.11", {}},            // a library of the wheel defines the name
      {"bindings-nowhere", "version ?", {"tag-python"}},
      {"bindings-outside", "version ?", {}},
      {"pypy", "version ?", {}},
      {"free-threaded", "version 3.14 3.14t", {}},
      {"abi3t", "abi3t 3.15", {}},  // by PyModExport_
      {"abi3t-without-slots", "abi3t 3.11", {"tag-python"}},
      {"abi3t-of-an-older-python", "abi3t 3.15", {"tag-python"}},
      {"win_amd64", "abi3 3.10", {}},
      {"macosx_11_0_arm64", "version 3.11 3.11", {}},
  };
  for (const auto& [wheel, python, errors] : wheels) {
    EXPECT_EQ(told(read_wheel_fixture(wheel).verdicts.python), python) << wheel;
    EXPECT_EQ(checked(wheel), errors) << wheel;
  }
  const auto findings = check(read_wheel_fixture("bindings-outside"), {});
  const auto note = std::ranges::find(findings, "tag-python", &Finding::id);
  ASSERT_NE(note, findings.end());
  EXPECT_EQ(note->level, Finding::Level::note);
  EXPECT_TRUE(has(note->what, "unless libbinding.abi3.so.6 defines it"));
}

TEST(PythonAbi, DecidesWhichPythonsAreServed) {
  const std::array<const char*, 3> users[] = {
      {"several-pythons", "3.12", ""},
      {"several-pythons-and-later-ones", "3.13",
       "its modules are built for Python 3.10, 3.11, 3.12"},
      {"free-threaded", "3.14t", ""},
      {"free-threaded", "3.14", "its tag is not for Python 3.14"},
      {"abi3t", "3.15t", ""},
      {"abi3t", "3.15", "its tag is not for Python 3.15"},
      {"one-python-tagged-none", "3.13",
       "its modules are bound to one Python, which they do not name"}};
  for (const auto& [wheel, python, why] : users) {
    const Cell cell{"x86_64", "2.15", "cpu", python};
    EXPECT_EQ(reason_text(why_not(read_wheel_fixture(wheel), cell)), why) << wheel;
  }
}

TEST(PythonAbi, StaticLibrariesBesideModulesOfAnotherSystem) {
  auto facts = read_wheel_fixture("good").facts;
  facts.wheel->file_name_tags = {"cp311-cp311-macosx_14_0_arm64"};
  EXPECT_EQ(judge_python(facts.libraries, facts.wheel).abi, PythonAbi::none);
  facts.libraries.front().kind = FileKind::archive;
  const auto python = judge_python(facts.libraries, facts.wheel);
  EXPECT_EQ(python.abi, PythonAbi::version);
  EXPECT_EQ(python.versions, Strings{"3.11"});
}

// The modules' names have no Python; the tag names one.
TEST(PythonAbi, ATagOfOnePythonWithoutAnAbi) {
  const std::vector<LibraryFacts> module{
      {.path = "pkg/_C.so", .python_symbols = {{"_PyPrivate", true}}, .python_module = true}};
  auto versions = [&](const std::string& tag) {
    return judge_python(module, WheelClaims{.file_name_tags = {tag}}).versions;
  };
  EXPECT_EQ(versions("cp311-none-manylinux_2_28_x86_64"), Strings{"3.11"});
  EXPECT_EQ(versions("cp312-cp312-manylinux_2_28_x86_64"), Strings{"3.12"});
  EXPECT_EQ(versions("cp3-none-manylinux_2_28_x86_64"), Strings{});
  EXPECT_EQ(versions("cp27-cp27mu-manylinux1_x86_64"), Strings{"2.7mu"});
  const auto old = judge_python(module, WheelClaims{.file_name_tags = {"cp37-cp37m-any"}});
  EXPECT_EQ(old.min, "3.7") << "a version, as the schema has it";
  EXPECT_EQ(versions("py3-none-manylinux_2_28_x86_64"), Strings{});
}

}  // namespace
}  // namespace wheelscope
