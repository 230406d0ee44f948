// Deflates contents made from other deflated contents: unchanged parts keep their compressed bytes.
// Compressing takes ten times as long as everything else that thinning a wheel needs.
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

// Writes the stream to `sink` piece by piece. Pieces that are views of the original's contents keep
// their blocks.
Result<void> write_deflated(const Pieces& contents, const DeflatedOriginal& original,
                            const Sink& sink);

}  // namespace wheelscope
