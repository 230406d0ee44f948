// A static CUDA runtime is recognised and dated by its texts and its version constant, and never
// guessed.
#include "readers/traces.h"

#include <elf.h>
#include <gtest/gtest.h>

#include "fixture.h"
#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// An ELF file whose read-only data has the texts of all runtimes up to `minor` (empty: none), and
// the given code.
struct Runtime {
  std::string rodata, code;
  Elf elf;

  Runtime(const std::string& minor, std::string code_bytes, std::uint16_t machine = EM_X86_64)
      : code(std::move(code_bytes)) {
    rodata = '\0' + cudart_table().present + '\0';
    for (const auto& entry : cudart_table().minors) {
      if (minor.empty() || older(minor, entry.version)) break;
      for (const auto& marker : entry.markers) rodata += marker + '\0';
    }
    elf.machine = machine;
    elf.sections = {{".rodata", bytes(rodata)}, {".text", bytes(code)}};
  }
  Runtime(const Runtime&) = delete;

  static Bytes bytes(const std::string& text) { return Bytes(std::as_bytes(std::span(text))); }
};

std::string little_endian(std::uint32_t word) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(word >> shift & 0xff);
  return bytes;
}

std::string version_function(const std::string& machine, std::uint32_t constant) {
  const auto& [before, after] = cudart_table().code.at(machine);
  return "code" + before +
         little_endian(machine == "x86_64" ? constant : 0x52800002 | constant << 5) + after +
         "more";
}

std::string version_of(const Runtime& runtime) {
  const auto found = find_static_cudart(runtime.elf);
  return found ? found->version : "no runtime";
}

TEST(Cudart, TextsAndConstantAgree) {
  EXPECT_EQ(version_of({"12.6", version_function("x86_64", 12060)}), "12.6");
  EXPECT_EQ(version_of({"13.0", version_function("aarch64", 13000), EM_AARCH64}), "13.0");
}

TEST(Cudart, EvidenceNamesBothTraces) {
  const Runtime runtime("12.8", version_function("x86_64", 12080));
  const auto evidence = find_static_cudart(runtime.elf)->evidence;
  ASSERT_EQ(evidence.size(), 4);
  EXPECT_TRUE(has(evidence[1], "new in CUDA 12.9")) << evidence[1];
  EXPECT_TRUE(has(evidence[2], "new in CUDA 12.8")) << evidence[2];
  EXPECT_TRUE(has(evidence[3], "returns CUDA 12.8")) << evidence[3];
}

TEST(Cudart, ConstantOfAnotherLibraryDoesNotCount) {
  EXPECT_EQ(
      version_of({"13.0", version_function("x86_64", 12000) + version_function("x86_64", 13000)}),
      "13.0");
}

TEST(Cudart, ConstantAloneDatesRuntimesOlderThanTheTable) {
  EXPECT_EQ(version_of({"", version_function("x86_64", 11020)}), "11.2");
}

TEST(Cudart, TextsAloneDecideOnlyBetweenNeighbours) {
  EXPECT_EQ(version_of({"12.8", "no such function"}), "12.8");
  EXPECT_EQ(version_of({"12.6", "no such function"}), "") << "it could be 12.7";
}

TEST(Cudart, ContradictionIsUnknown) {
  EXPECT_EQ(version_of({"12.6", version_function("x86_64", 13020)}), "");
}

TEST(Cudart, CutOffFunctionIsNoEvidence) {
  const auto whole = version_function("x86_64", 12060);
  for (std::size_t size = 0; size < whole.size() - 4; ++size)
    EXPECT_EQ(version_of({"12.6", whole.substr(0, size)}), "") << size;
}

TEST(Cudart, OtherFilesHaveNone) {
  Runtime shared("12.6", version_function("x86_64", 12060));
  shared.elf.soname = "libcudart.so.12";
  EXPECT_EQ(version_of(shared), "no runtime");
  shared.elf.soname = "libcudart-5a077122.so.12.0.107";  // renamed by auditwheel
  EXPECT_EQ(version_of(shared), "no runtime");
  EXPECT_EQ(find_static_cudart(Elf{}), std::nullopt);
}

}  // namespace
}  // namespace wheelscope
