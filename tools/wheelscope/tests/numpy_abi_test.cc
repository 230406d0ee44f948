// Which NumPy modules were built for, by the texts of its headers. test_env.py asks NumPy itself.
#include "verdicts/numpy_abi.h"

#include <gtest/gtest.h>

#include "facts/wheel.h"
#include "fixture.h"

namespace wheelscope {
namespace {

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

TEST(NumpyAbi, ClashesWithVersions) {
  const NumpyApi one{.one = true}, cython{.one = true, .checks_sizes = true}, two{.two = true},
      both{.one = true, .two = true, .min = "1.23"};
  EXPECT_EQ(clash_with_numpy(one, "1.26.4"), NumpyClash::none);
  EXPECT_EQ(clash_with_numpy(one, "2.0.0"), NumpyClash::old_headers);
  EXPECT_EQ(clash_with_numpy(one, "2.0.0rc1"), NumpyClash::old_headers);
  EXPECT_EQ(clash_with_numpy(cython, "2.3"), NumpyClash::old_types);
  EXPECT_EQ(clash_with_numpy(two, "1.26"), NumpyClash::new_headers);
  EXPECT_EQ(clash_with_numpy(both, "1.22.4"), NumpyClash::new_functions);
  EXPECT_EQ(clash_with_numpy(both, "1.23.0"), NumpyClash::none);
  EXPECT_EQ(clash_with_numpy(both, ""), NumpyClash::none) << "there is none";
}

}  // namespace
}  // namespace wheelscope
