// Sources: where bytes come from. A mapped file and an inflated member have all of their bytes; a
// lazy source fetches blocks on request, and can fail to.
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

  // Views someone else's bytes, which must outlive this.
  static Source view(Bytes bytes);

  // Maps a file for reading.
  static Result<Source> map(const std::string& path);

  // Allocates memory for the caller to fill; a source of no bytes if it is too large.
  static Source allocate(std::uint64_t size);

  // Does the same in a temporary file without a name, for contents larger than the memory that an
  // input justifies; a source of no bytes if the disk has no room.
  static Source spool(std::uint64_t size);

  // Makes a source of `size` bytes, none of which is here yet. `fill` must write a given range of
  // whole blocks (the last may be shorter); several threads may request different ranges. If it
  // fails, the range stays withheld.
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

// Contents made of pieces of other bytes, without copying them.

class Pieces {
 public:
  using Piece = std::span<const std::byte>;

  Pieces() = default;
  Pieces(Piece all) { add(all); }  // NOLINT(google-explicit-constructor)

  // Adds bytes, which must outlive this. Adjacent pieces become one.
  void add(Piece piece);
  void own(std::string text);
  void add_zeros(std::uint64_t count);

  const std::vector<Piece>& list() const { return list_; }
  std::uint64_t size() const { return size_; }

  // Returns a copy; a source of no bytes if there is no memory for it.
  Source joined() const;

 private:
  std::vector<Piece> list_;
  std::deque<std::string> own_;
  std::uint64_t size_ = 0;
};

}  // namespace wheelscope
