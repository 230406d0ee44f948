// Deflates contents that were made from other deflated ones: what is still the same keeps its
// compressed bytes. Compressing takes ten times as long as all else that thinning a wheel needs.
#pragma once

#include <functional>

#include "readers/inflate.h"
#include "source/source.h"

namespace wheelscope {

struct DeflatedOriginal {
  std::span<const std::byte> stream, contents;
  std::vector<DeflateBlock> blocks;
};

using Sink = std::function<Result<void>(std::span<const std::byte>)>;

// Gives the stream to `sink`, bit by bit. Pieces that are views of the original's contents keep
// their blocks.
Result<void> write_deflated(const Pieces& contents, const DeflatedOriginal& original,
                            const Sink& sink);

}  // namespace wheelscope
