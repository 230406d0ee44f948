// Inflates like libdeflate, and also tells where the stream's blocks are, so that unchanged blocks
// can be copied into another stream (writers/deflate_writer.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace wheelscope {

struct DeflateBlock {
  std::uint64_t first_bit = 0, end_bit = 0;  // in the stream
  std::uint64_t at = 0, size = 0;            // in the contents
  std::uint64_t reach = 0;                   // how far back its matches reach
  bool stored = false;
};

// Fills `room`. Returns nothing if the stream is damaged or its contents do not fit exactly. If a
// stream has more blocks than a compressor would make, the later ones are not listed.
std::optional<std::vector<DeflateBlock>> inflate_blocks(std::span<const std::byte> stream,
                                                        std::span<std::byte> room);

}  // namespace wheelscope
