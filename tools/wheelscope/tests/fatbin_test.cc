// Device code of every compression is decompressed correctly; a broken container does not hide the
// next one.
#include "readers/fatbin.h"

#include <gtest/gtest.h>

#include "fixture.h"

namespace wheelscope {
namespace {

Fatbin read(const Fixture& file) {
  Fatbin fatbin;
  read_fatbin(file.bytes(), false, any_memory(), fatbin);
  return fatbin;
}

std::vector<std::string> targets(const Fatbin& fatbin) {
  std::vector<std::string> names;
  for (const auto& code : fatbin.codes) names.push_back(name_of(code.kind) + (" " + code.target));
  return names;
}

TEST(Fatbin, ListsEveryContainer) {
  const Fixture file("fatbin/good.fatbin");
  const auto fatbin = read(file);
  EXPECT_TRUE(fatbin.problems.empty());
  EXPECT_EQ(targets(fatbin), (std::vector<std::string>{"sass 100f", "ptx 120", "sass 75",
                                                       "sass 100f", "ptx 120", "sass 75"}));
  EXPECT_EQ(fatbin.codes[1].isa, "8.8");
  EXPECT_EQ(name_of(fatbin.codes[0].compression), std::string("zstd"));
  EXPECT_EQ(name_of(fatbin.codes[2].compression), std::string("none"));
}

TEST(Fatbin, Decompresses) {
  const Fixture file("elf/good.so");
  const auto fatbin = read_device_code(read_elf(file.bytes()).value(), file.bytes(), any_memory());
  ASSERT_EQ(fatbin.codes.size(), 3U);
  EXPECT_TRUE(decompress(fatbin.codes[0], any_memory())
                  ->starts_with("\x7f"
                                "ELF cubin"))
      << "zstd";
  EXPECT_TRUE(decompress(fatbin.codes[1], any_memory())
                  ->starts_with("\x7f"
                                "ELF cubin"))
      << "lz4";
  EXPECT_TRUE(decompress(fatbin.codes[2], any_memory())->starts_with(".version 8.4\n")) << "lz4";
  EXPECT_EQ(fatbin.codes[1].target, "90a");
}

TEST(Fatbin, IsLittleEndianOnEveryMachine) {
  for (const auto* name :
       {"elf/big-endian.so", "elf/big-endian-32-bit.so", "elf/no-section-headers.so"}) {
    const Fixture file(name);
    const auto fatbin =
        read_device_code(read_elf(file.bytes()).value(), file.bytes(), any_memory());
    EXPECT_EQ(targets(fatbin), (std::vector<std::string>{"sass 80", "sass 90a", "ptx 90"})) << name;
    EXPECT_TRUE(fatbin.problems.empty()) << name;
  }
}

TEST(Fatbin, KnowsRelocatableCodeAndCubins) {
  const Fixture object("elf/object.o"), cubin("elf/kernel.cubin");
  EXPECT_TRUE(read_device_code(read_elf(object.bytes()).value(), object.bytes(), any_memory())
                  .codes.at(0)
                  .relocatable);
  EXPECT_EQ(read_device_code(read_elf(cubin.bytes()).value(), cubin.bytes(), any_memory())
                .codes.at(0)
                .target,
            "80");
}

TEST(Fatbin, NamesTheOffsetOfADefect) {
  const std::pair<const char*, std::uint64_t> defects[] = {{"truncated-body", 16},
                                                           {"wrong-version", 0},
                                                           {"entry-header-too-small", 16},
                                                           {"payload-out-of-range", 80},
                                                           {"unknown-compression", 16}};
  for (const auto& [name, offset] : defects) {
    const Fixture file("fatbin/" + std::string(name) + ".fatbin");
    const auto fatbin = read(file);
    ASSERT_EQ(fatbin.problems.size(), 1U) << name;
    EXPECT_EQ(fatbin.problems.front().offset, offset) << name;
  }
}

TEST(Fatbin, FindsTheContainerAfterForeignBytes) {
  const Fixture file("fatbin/foreign-bytes-between.fatbin");
  const auto fatbin = read(file);
  EXPECT_EQ(fatbin.problems.size(), 1U);
  EXPECT_EQ(fatbin.codes.size(), 6U);
}

TEST(Fatbin, RefusesDamagedAndOversizedCode) {
  for (const auto* name : {"damaged-zstd", "bomb"}) {
    const Fixture file("fatbin/" + std::string(name) + ".fatbin");
    EXPECT_FALSE(decompress(read(file).codes.at(0), any_memory())) << name;
  }
  const std::string damaged("\xff\xff", 2);
  const auto payload = Bytes(std::as_bytes(std::span(damaged)));
  EXPECT_FALSE(
      decompress({.compression = DeviceCode::Compression::lz4, .size = 100, .payload = payload},
                 any_memory()));
  EXPECT_FALSE(
      decompress({.compression = DeviceCode::Compression::lz4, .size = 1000, .payload = payload},
                 any_memory()));
}

}  // namespace
}  // namespace wheelscope
