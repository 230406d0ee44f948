// Contents that are put together from other bytes, without a copy of them.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "source/source.h"

namespace wheelscope {

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
