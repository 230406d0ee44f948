// Joins blocks of deflated data (RFC 1951).
//
// A stream is a sequence of blocks of bits, which begin and end anywhere in a byte. A block has its
// own Huffman codes, and repeats bytes from the last 32 KiB, which may belong to earlier blocks.
//
//   1 bit   1 for the last block
//   2 bits  0: stored; 1: fixed codes; 2: the lengths of the codes follow
//   ...     symbols; 256 ends the block
//
// A block may be copied to another bit position if its bytes, and those to which it may refer, are
// unchanged. Everything else is compressed anew.
#include "writers/zip_writer.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

namespace wheelscope {
namespace {

constexpr std::size_t buffer_size = 1 << 20, most_at_once = 2 << 20;
constexpr std::uint64_t farthest_repeat = 32 << 10;

class BlockJoiner {
 public:
  explicit BlockJoiner(const Sink& sink) : sink_(sink), buffer_(buffer_size) {}

  Result<void> copy(std::span<const std::byte> stream, const DeflateBlock& block) {
    constexpr unsigned step = 56;
    auto at = block.first_bit + 1;
    TRY_VOID(put(0, 1));  // not the last block
    if (block.stored) {
      TRY_VOID(put(0, 2));
      TRY_VOID(align());
      at = block.end_bit - 8 * (block.size + 4);
    }
    for (; at < block.end_bit; at += step) {
      const auto rest = stream.subspan(at / 8);
      std::uint64_t word = 0;
      std::memcpy(&word, rest.data(), std::min(rest.size(), sizeof word));
      const auto count = std::min<std::uint64_t>(step, block.end_bit - at);
      TRY_VOID(put(word >> at % 8 & ((std::uint64_t{1} << count) - 1), count));
    }
    return {};
  }

  Result<void> finish() {
    TRY_VOID(put(0b0000000'01'1, 10));  // an empty block: the last one, fixed codes, its end
    TRY_VOID(align());
    return flush();
  }

 private:
  Result<void> put(std::uint64_t bits, std::uint64_t count) {
    waiting_ |= bits << waiting_count_;
    waiting_count_ += count;
    std::memcpy(buffer_.data() + used_, &waiting_, sizeof waiting_);
    const auto whole = waiting_count_ / 8;
    used_ += whole;
    waiting_ = whole == sizeof waiting_ ? 0 : waiting_ >> 8 * whole;
    waiting_count_ %= 8;
    if (used_ + sizeof waiting_ > buffer_.size()) TRY_VOID(flush());
    return {};
  }
  Result<void> align() { return put(0, (8 - waiting_count_) % 8); }
  Result<void> flush() { return sink_(std::span(buffer_).first(std::exchange(used_, 0))); }

  const Sink& sink_;
  std::vector<std::byte> buffer_;
  std::size_t used_ = 0;
  std::uint64_t waiting_ = 0, waiting_count_ = 0;  // bits: fewer than a byte between two calls
};

// Gathers bytes to compress.
class Compressor {
 public:
  explicit Compressor(BlockJoiner& joiner) : joiner_(joiner) {
    if (!compressor_) throw std::bad_alloc();
  }

  Result<void> add(std::span<const std::byte> contents) {
    while (!contents.empty()) {
      const auto some = contents.first(std::min(contents.size(), most_at_once - waiting_.size()));
      waiting_.insert(waiting_.end(), some.begin(), some.end());
      contents = contents.subspan(some.size());
      if (waiting_.size() == most_at_once) TRY_VOID(compress());
    }
    return {};
  }

  Result<void> compress() {
    if (waiting_.empty()) return {};
    packed_.resize(libdeflate_deflate_compress_bound(compressor_.get(), waiting_.size()));
    const auto size = libdeflate_deflate_compress(compressor_.get(), waiting_.data(),
                                                  waiting_.size(), packed_.data(), packed_.size());
    const auto stream = std::span(packed_).first(size);
    const auto blocks = inflate_blocks(stream, waiting_);  // to what it was
    if (!blocks) std::abort();
    for (const auto& block : *blocks) TRY_VOID(joiner_.copy(stream, block));
    waiting_.clear();
    return {};
  }

 private:
  static constexpr int level = 6;
  std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor_{
      libdeflate_alloc_compressor(level), libdeflate_free_compressor};
  BlockJoiner& joiner_;
  std::vector<std::byte> waiting_, packed_;
};

}  // namespace

Result<void> write_deflated(const Pieces& contents, const DeflatedOriginal& original,
                            const Sink& sink) {
  BlockJoiner joiner(sink);
  Compressor compressor(joiner);
  auto block = original.blocks.begin();
  for (auto piece : contents.list()) {
    const auto* const start = original.contents.data();
    const auto* const end = start + original.contents.size();
    if (std::less_equal{}(start, piece.data()) && std::less{}(piece.data(), end)) {
      auto at = static_cast<std::uint64_t>(piece.data() - start);
      const auto first = at, stop = at + piece.size();
      for (; block != original.blocks.end() && block->at + block->size <= stop; ++block) {
        if (block->at < first + std::min(block->at, farthest_repeat)) continue;
        TRY_VOID(compressor.add(original.contents.subspan(at, block->at - at)));
        TRY_VOID(compressor.compress());
        TRY_VOID(joiner.copy(original.stream, *block));
        at = block->at + block->size;
      }
      piece = original.contents.subspan(at, stop - at);
    }
    TRY_VOID(compressor.add(piece));
  }
  TRY_VOID(compressor.compress());
  return joiner.finish();
}

}  // namespace wheelscope
