// Inflates like libdeflate, and also says where the blocks of the stream lie: unchanged ones can be
// copied into another stream (writers/deflate_writer.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace wheelscope {

struct DeflateBlock {
  std::uint64_t first_bit = 0, end_bit = 0;  // in the stream
  std::uint64_t at = 0, size = 0;            // of its contents
  std::uint64_t reach = 0;                   // how far before them its matches start
  bool stored = false;
};

// Fills `room`; nothing where the stream is damaged or has other contents than fit exactly. Of a
// stream with more blocks than a compressor would make, the later ones are not listed.
std::optional<std::vector<DeflateBlock>> inflate_blocks(std::span<const std::byte> stream,
                                                        std::span<std::byte> room);

}  // namespace wheelscope
