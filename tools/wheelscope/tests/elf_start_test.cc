// The start of a shared library tells what the whole of it does, for the libraries of this system.
#include "readers/elf_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "fixture.h"
#include "text/text.h"

namespace wheelscope {
namespace {

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
    for (const auto part : {1, 2, 4}) {  // of four: less must tell the same or nothing
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
