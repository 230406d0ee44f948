// Sources: where bytes come from. A mapped file and an inflated member have them all; a lazy source
// fetches the blocks that a reader asks for, and can say that it has none.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "source/bytes.h"

namespace wheelscope {

class Source {
 public:
  Source() = default;

  // Someone else's bytes, which outlive this.
  static Source view(Bytes bytes);

  // A file, mapped for reading.
  static Result<Source> map(const std::string& path);

  // Memory to be written by the caller; too large: a source of no bytes.
  static Source allocate(std::uint64_t size);

  // The same in a temporary file without a name: what does not fit into the memory that an input
  // justifies. No room on the disk: a source of no bytes.
  static Source spool(std::uint64_t size);

  // `size` bytes of which none is here yet: `fill` is given a range of whole blocks (the last may
  // be shorter) to write; several threads may ask for different ones. What it fails on stays
  // withheld.
  using Fill = std::function<bool(std::uint64_t offset, std::span<std::byte> room)>;
  static Source lazy(std::uint64_t size, Fill fill, std::uint64_t block = 64 << 10);

  Bytes bytes() const { return bytes_; }
  std::span<std::byte> writable() { return {memory_.get(), memory_ ? bytes_.size() : 0}; }

 private:
  struct Free {
    std::uint64_t mapped;  // bytes from mmap; 0: from malloc
    void operator()(std::byte* memory) const;
  };
  struct Blocks;

  static Source reserve(std::uint64_t size);
  bool adopt(void* memory, std::uint64_t size);

  std::unique_ptr<std::byte[], Free> memory_;
  std::shared_ptr<Blocks> blocks_;  // of a lazy source
  Bytes bytes_;
  std::jthread trimmer_;  // of a file's mapping; ends before the mapping does
};

// Contents that are put together from other bytes, without a copy of them.

class Pieces {
 public:
  using Piece = std::span<const std::byte>;

  Pieces() = default;
  Pieces(Piece all) { add(all); }  // NOLINT(google-explicit-constructor)

  // Bytes that outlive this. Neighbours become one piece.
  void add(Piece piece);
  void own(std::string text);
  void add_zeros(std::uint64_t count);

  const std::vector<Piece>& list() const { return list_; }
  std::uint64_t size() const { return size_; }

  // A copy; no bytes where there is no memory for it.
  Source joined() const;

 private:
  std::vector<Piece> list_;
  std::deque<std::string> own_;
  std::uint64_t size_ = 0;
};

}  // namespace wheelscope
