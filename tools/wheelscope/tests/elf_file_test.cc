// ELF files of every width and byte order give the same facts; a broken table leaves the others
// readable. For the libraries of this system, the first bytes tell the same as the whole file.
#include "readers/elf_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "fixture.h"
#include "text/text.h"

namespace wheelscope {
namespace {

TEST(Elf, OfEveryWidthAndByteOrderGivesTheSameFacts) {
  for (const std::string name : {"good.so", "gnu-hash.so", "no-section-headers.so", "32-bit.so",
                                 "big-endian.so", "big-endian-32-bit.so"}) {
    SCOPED_TRACE(name);
    const Fixture file("elf/" + name);
    const auto elf = read_elf(file.bytes()).value();
    EXPECT_TRUE(elf.problems.empty());
    EXPECT_EQ(elf.needed,
              (std::vector<std::string_view>{"libtorch.so", "libstdc++.so.6", "libc.so.6"}));
    ASSERT_EQ(elf.version_needs.size(), 3U);
    EXPECT_EQ(elf.version_needs[0].library, "libc.so.6");
    EXPECT_EQ(elf.version_needs[1].version, "GLIBC_2.27");
    ASSERT_EQ(elf.symbols.size(), 5U);
    EXPECT_EQ(elf.symbols[0].name, "memcpy");
    EXPECT_EQ(elf.symbols[0].version, "GLIBC_2.17");
    EXPECT_EQ(elf.symbols[0].library, "libc.so.6");
    EXPECT_TRUE(elf.symbols[3].weak);
    EXPECT_TRUE(elf.symbols[4].defined);
    EXPECT_EQ(elf.hardening.relro, ElfHardening::Relro::full);
    EXPECT_TRUE(elf.hardening.nx && elf.hardening.bind_now && elf.hardening.stack_protector);
  }
}

// A tool that rewrites tables may put the names into a segment of their own, far away; the table of
// symbols then ends where its section does.
TEST(Elf, FindsTheNeedsOfALibraryWithRewrittenTables) {
  const Fixture file("elf/rewritten-tables.so");
  const auto elf = read_elf(file.bytes()).value();
  EXPECT_TRUE(elf.problems.empty());
  ASSERT_EQ(elf.symbols.size(), 4U);
  EXPECT_EQ(elf.symbols[2].name, "torch_call_dispatcher");
}

// The loader treats two segments that join in memory and in the file as one.
TEST(Elf, ReadsATableThatRunsFromOneSegmentIntoTheNext) {
  const Fixture file("elf/split-symbols.so"), whole("elf/good.so");
  const auto elf = read_elf(file.bytes()).value();
  EXPECT_TRUE(elf.problems.empty());
  EXPECT_EQ(elf.symbols.size(), read_elf(whole.bytes()).value().symbols.size());
}

TEST(Elf, NamesMachines) {
  const std::pair<const char*, const char*> machines[] = {{"good.so", "x86_64"},
                                                          {"32-bit.so", "i686"},
                                                          {"big-endian.so", "s390x"},
                                                          {"kernel.cubin", "cuda"}};
  for (const auto& [file, machine] : machines) {
    EXPECT_EQ(machine_name(read_elf(Fixture(std::string("elf/") + file).bytes()).value()), machine);
  }
  const std::pair<std::uint16_t, const char*> numbers[] = {
      {183, "aarch64"}, {40, "armv7l"},       {21, "ppc64le"},
      {243, "riscv64"}, {258, "loongarch64"}, {9999, "machine-9999"}};
  for (const auto& [number, name] : numbers) {
    EXPECT_EQ(machine_name(Elf{.machine = number}), name);
  }
}

TEST(Elf, SeesAnExecutableStackAndTextRelocations) {
  const auto elf = read_elf(Fixture("elf/executable-stack.so").bytes()).value();
  EXPECT_FALSE(elf.hardening.nx);
  EXPECT_TRUE(elf.hardening.text_relocations);
}

TEST(Elf, KeepsVersionDefinitionsApart) {
  const Fixture file("elf/versions.so");
  const auto elf = read_elf(file.bytes()).value();
  EXPECT_EQ(elf.soname, "libv.so.1");
  EXPECT_EQ(elf.version_definitions, (std::vector<std::string_view>{"V_1", "V_2"}));
  ASSERT_EQ(elf.symbols.size(), 2U);
  EXPECT_TRUE(elf.symbols[0].default_version);
  EXPECT_FALSE(elf.symbols[1].default_version);
  EXPECT_EQ(elf.symbols[1].version, "V_1");
}

TEST(Elf, RefusesWhatHasNoHeader) {
  for (const auto* name : {"too-short-for-header", "empty-class", "unknown-byte-order"}) {
    EXPECT_FALSE(read_elf(Fixture("elf/" + std::string(name) + ".so").bytes())) << name;
  }
  EXPECT_FALSE(read_elf(Fixture("zip/good.zip").bytes()));
}

struct BrokenElf {
  const char* file;
  std::uint64_t offset;
};

TEST(Elf, TellsWhereATableIsBroken) {
  for (const auto& [name, offset] :
       {BrokenElf{"program-headers-out-of-range", std::uint64_t{1} << 60},
        BrokenElf{"program-header-size", 54}}) {
    const auto elf = read_elf(Fixture("elf/" + std::string(name) + ".so").bytes()).value();
    ASSERT_FALSE(elf.problems.empty()) << name;
    EXPECT_EQ(elf.problems.front().offset, offset) << name;
    EXPECT_FALSE(elf.sections.empty()) << "the sections are sound";
  }
}

TEST(Elf, ReadsSegmentsWithoutSections) {
  const auto elf = read_elf(Fixture("elf/section-headers-out-of-range.so").bytes()).value();
  EXPECT_EQ(elf.problems.size(), 0U);
  EXPECT_EQ(elf.section_problems.size(), 1U);
  EXPECT_EQ(elf.needed.size(), 3U);
}

using Names = std::multiset<std::string>;

Names needed(const Elf& elf) {
  return {elf.needed.begin(), elf.needed.end()};
}

Names versions(const Elf& elf) {
  Names names;
  for (const auto& need : elf.version_needs)
    names.insert(std::string(need.library) + " " + std::string(need.version) +
                 (need.weak ? " weak" : ""));
  return names;
}

Names symbols(const Elf& elf) {
  Names names;
  for (const auto& symbol : elf.symbols)
    names.insert(std::string(symbol.name) + (symbol.defined ? " defined" : "") +
                 (symbol.weak ? " weak" : ""));
  return names;
}

TEST(ElfStart, TellsOfThisSystemsLibrariesWhatTheWholeFileTells) {
  std::size_t told = 0, all = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/usr/lib/" + std::string(TRIPLET))) {
    const auto path = entry.path().string();
    if (!entry.is_regular_file() || path.find(".so") == path.npos) continue;
    const auto source = Source::map(path);
    if (!source || !looks_like_elf(source->bytes())) continue;
    ++all;
    Allowance allowance;
    Loan loan(allowance);
    const auto whole = read_elf(source->bytes(), loan);
    ASSERT_TRUE(whole) << path;
    for (const auto part : {1, 2, 4}) {  // quarters; a part tells the same or nothing
      const auto start = source->bytes().slice(0, source->bytes().size() * part / 4, "start");
      const auto elf = read_elf_start(*start, base_name(path), loan);
      if (!elf) continue;
      EXPECT_EQ(versions(*elf), versions(*whole)) << path;
      EXPECT_EQ(symbols(*elf), symbols(*whole)) << path;
      for (const auto& name : needed(*whole))
        EXPECT_TRUE(needed(*elf).contains(name)) << path << " needs " << name;
      told += part == 4;
    }
  }
  EXPECT_GT(told, all / 2) << "of " << all;
}

TEST(ElfStart, OtherFilesTellNothing) {
  Allowance allowance;
  Loan loan(allowance);
  for (const auto* name : {"elf/good.so", "zip/good.zip"}) {
    const Fixture fixture(name);
    for (std::uint64_t length = 0; length < fixture.bytes().size(); length += 7) {
      const auto start = fixture.bytes().slice(0, length, "start");
      (void)read_elf_start(*start, "good.so", loan);  // must not crash
    }
  }
  const Fixture zip("zip/good.zip");
  EXPECT_FALSE(read_elf_start(zip.bytes(), "good.so", loan));
}

}  // namespace
}  // namespace wheelscope
