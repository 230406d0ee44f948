// Every kind of file with machine code becomes facts, and none costs more memory than it should.
#include "facts/wheel.h"

#include <gtest/gtest.h>

#include "fixture.h"

namespace wheelscope {
namespace {

LibraryFacts library(const std::string& name) {
  return read_item(fixture_path("elf/" + name), {.symbols = true})->facts.libraries.at(0);
}

std::string target(const std::string& name) {
  return library(name).device_code.at(0).target;
}

TEST(Library, CubinsKnowTheirTarget) {
  EXPECT_EQ(target("kernel.cubin"), "80");
  EXPECT_EQ(target("kernel-of-cuda-12.cubin"), "90a");
  EXPECT_EQ(target("kernel-accelerated.cubin"), "100a");
  EXPECT_EQ(target("kernel-of-a-family.cubin"), "100f");
}

TEST(Library, KnowsWhomAFileIsFor) {
  EXPECT_EQ(library("good.so").role, Role::host);
  EXPECT_EQ(library("kernel.cubin").role, Role::device);
  EXPECT_EQ(library("kernel.hsaco").role, Role::foreign);
  EXPECT_STREQ(name_of(library("objects.a").kind), "archive");
  EXPECT_STREQ(name_of(library("kernel.ptx").kind), "ptx");
  EXPECT_STREQ(name_of(library("empty-class.so").kind), "broken");
}

TEST(Library, ReadsStaticLibraries) {
  const auto archive = library("objects.a");
  ASSERT_EQ(archive.device_code.size(), 2U);
  EXPECT_EQ(archive.device_code[1].target, "80");
  EXPECT_TRUE(archive.device_code[1].relocatable);
  EXPECT_EQ(archive.machine, "x86_64");
  const auto damaged = read_item(fixture_path("elf/damaged.a"), {});
  EXPECT_EQ(ids(damaged->findings), Ids{"archive-broken"});
}

TEST(Library, ReadsLoosePtxAndFatBinaries) {
  EXPECT_EQ(target("kernel.ptx"), "90");
  EXPECT_EQ(library("kernel.ptx").device_code.at(0).isa, "8.4");
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
  for (const auto& symbol : library("hidden-definition.so").symbols) EXPECT_FALSE(symbol.defined);
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
