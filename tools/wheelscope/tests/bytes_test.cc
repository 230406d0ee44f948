// slice() lets nothing out of bounds through; fields come in the byte order of the view.
#include "source/bytes.h"

#include <gtest/gtest.h>

#include <array>

namespace wheelscope {
namespace {

constexpr std::array data{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{0}};
const Bytes view{data, 100};

TEST(Bytes, SlicesInsideOnly) {
  EXPECT_EQ(view.slice(1, 4, "x")->size(), 4U);
  EXPECT_EQ(view.slice(5, 0, "x")->size(), 0U);
  EXPECT_FALSE(view.slice(1, 5, "x"));
  EXPECT_FALSE(view.slice(6, 0, "x"));
  EXPECT_FALSE(view.slice(~std::uint64_t{0}, 2, "x"));
}

TEST(Bytes, NamesThePlaceInTheFile) {
  EXPECT_EQ(view.slice(3, 9, "x").error().offset, 103U);
  EXPECT_EQ(view.slice(2, 2, "x")->origin(), 102U);
}

TEST(Bytes, ReadsBothByteOrders) {
  EXPECT_EQ(view.u32(0), 0x04030201U);
  EXPECT_EQ(view.in_big_endian().u32(0), 0x01020304U);
  EXPECT_EQ(view.in_big_endian().slice(1, 2, "x")->u16(0), 0x0203U);
}

TEST(Bytes, EndsStringsAtNul) {
  EXPECT_EQ(view.c_string(2, "x")->size(), 2U);
  EXPECT_FALSE(view.slice(0, 4, "x")->c_string(0, "x"));
  EXPECT_FALSE(view.c_string(9, "x"));
}

TEST(BytesDeathTest, AbortsOnAFieldOutsideOfItsRecord) {
  EXPECT_DEATH(view.u64(0), "");
}

}  // namespace
}  // namespace wheelscope
