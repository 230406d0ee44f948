// Lists views, and keeps the few bytes that are new.
#include "source/pieces.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace wheelscope {

void Pieces::add(Piece piece) {
  if (piece.empty()) return;
  size_ += piece.size();
  if (!list_.empty() && list_.back().data() + list_.back().size() == piece.data())
    list_.back() = {list_.back().data(), list_.back().size() + piece.size()};
  else
    list_.push_back(piece);
}

void Pieces::own(std::string text) {
  add(std::as_bytes(std::span(own_.emplace_back(std::move(text)))));
}

void Pieces::add_zeros(std::uint64_t count) {
  static constexpr std::array<std::byte, 64 << 10> zeros{};
  while (count > 0) {
    const auto some = std::min<std::uint64_t>(count, zeros.size());
    add(std::span(zeros).first(some));
    count -= some;
  }
}

Source Pieces::joined() const {
  auto output = Source::allocate(size_);
  auto room = output.writable();
  if (room.size() != size_) return {};
  for (const auto& piece : list_) {
    std::memcpy(room.data(), piece.data(), piece.size());
    room = room.subspan(piece.size());
  }
  return output;
}

}  // namespace wheelscope
