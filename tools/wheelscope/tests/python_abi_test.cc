// Which Pythons load a wheel's modules, and what `check` and `cover` make of its tags.
#include "verdicts/python_abi.h"

#include <gtest/gtest.h>

#include "answers/cover.h"
#include "findings/policy.h"
#include "fixture.h"
#include "report/reason_text.h"

namespace wheelscope {
namespace {

using Strings = std::vector<std::string>;

std::string reason(const std::string& wheel, const std::string& python) {
  return reason_text(why_not(read_wheel_fixture(wheel), {"x86_64", "2.15", "cpu", python}));
}

Ids checked(const std::string& wheel) {
  auto findings = check(read_wheel_fixture(wheel), {});
  std::erase_if(findings, [](const Finding& f) { return f.level != Finding::Level::error; });
  return ids(findings);
}

TEST(PythonAbi, AModuleForEachOfSeveralPythons) {
  const auto python = read_wheel_fixture("several-pythons").verdicts.python;
  EXPECT_EQ(python.abi, PythonAbi::version);
  EXPECT_EQ(python.versions, (Strings{"3.10", "3.11", "3.12"}));
  EXPECT_EQ(python.min, "3.10");
  EXPECT_EQ(reason("several-pythons", "3.12"), "");
  EXPECT_EQ(reason("several-pythons-and-later-ones", "3.13"),
            "its modules are built for Python 3.10, 3.11, 3.12");
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

TEST(PythonAbi, TagsAreJudgedWithRequiresPython) {
  EXPECT_EQ(checked("several-pythons"), Ids{});
  EXPECT_EQ(checked("several-pythons-and-later-ones"), Ids{}) << "3.13 came after the wheel";
  EXPECT_EQ(checked("several-pythons-not-the-oldest"), Ids{"tag-python"});
  EXPECT_EQ(checked("abi3-of-a-newer-python"), Ids{"tag-python"});
  EXPECT_EQ(checked("abi3-with-requires-python"), Ids{}) << "no older Python gets it";
}

TEST(PythonAbi, NamesLikePythonsMayBeOfAnotherLibrary) {
  EXPECT_EQ(read_wheel_fixture("bindings-inside").verdicts.python.abi, PythonAbi::abi3);
  EXPECT_EQ(checked("bindings-inside"), Ids{}) << "a library of the wheel defines it";
  EXPECT_EQ(checked("bindings-nowhere"), Ids{"tag-python"});
  EXPECT_EQ(checked("bindings-outside"), Ids{});
  const auto findings = check(read_wheel_fixture("bindings-outside"), {});
  const auto note = std::ranges::find(findings, "tag-python", &Finding::id);
  ASSERT_NE(note, findings.end());
  EXPECT_EQ(note->level, Finding::Level::note);
  EXPECT_NE(note->what.find("unless libbinding.abi3.so.6 defines it"), std::string::npos);
}

TEST(PythonAbi, OtherImplementationsAreNotJudged) {
  EXPECT_EQ(checked("pypy"), Ids{});
}

TEST(PythonAbi, FreeThreadedModulesAreForThatBuild) {
  const auto python = read_wheel_fixture("free-threaded").verdicts.python;
  EXPECT_EQ(python.versions, Strings{"3.14t"});
  EXPECT_EQ(python.min, "3.14") << "a version, as the schema has it";
  EXPECT_EQ(checked("free-threaded"), Ids{});
  EXPECT_EQ(reason("free-threaded", "3.14t"), "");
  EXPECT_EQ(reason("free-threaded", "3.14"), "its tag is not for Python 3.14");
}

TEST(PythonAbi, Abi3tIsForFreeThreadedBuilds) {
  EXPECT_EQ(read_wheel_fixture("abi3t").verdicts.python.abi, PythonAbi::abi3t);
  EXPECT_EQ(read_wheel_fixture("abi3t").verdicts.python.min, "3.15") << "by PyModExport_";
  EXPECT_EQ(checked("abi3t"), Ids{});
  EXPECT_EQ(checked("abi3t-without-slots"), Ids{"tag-python"});
  EXPECT_EQ(checked("abi3t-of-an-older-python"), Ids{"tag-python"});
  EXPECT_EQ(reason("abi3t", "3.15t"), "");
  EXPECT_EQ(reason("abi3t", "3.15"), "its tag is not for Python 3.15");
}

TEST(PythonAbi, ABoundModuleUnderATagForAllServesNobody) {
  EXPECT_EQ(reason("one-python-tagged-none", "3.13"),
            "its modules are bound to one Python, which they do not name");
}

// Its modules have no Python in their names; the tag has.
TEST(PythonAbi, ATagOfOnePythonWithoutAnAbi) {
  const std::vector<LibraryFacts> module{
      {.path = "pkg/_C.so", .python_symbols = {{"_PyPrivate", true}}, .python_module = true}};
  auto versions = [&](const std::string& tag) {
    return judge_python(module, WheelClaims{.file_name_tags = {tag}}).versions;
  };
  EXPECT_EQ(versions("cp311-none-manylinux_2_28_x86_64"), Strings{"3.11"});
  EXPECT_EQ(versions("cp312-cp312-manylinux_2_28_x86_64"), Strings{"3.12"});
  EXPECT_EQ(versions("cp3-none-manylinux_2_28_x86_64"), Strings{});
  EXPECT_EQ(versions("py3-none-manylinux_2_28_x86_64"), Strings{});
}

}  // namespace
}  // namespace wheelscope
