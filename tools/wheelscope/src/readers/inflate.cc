// Decodes deflated data: RFC 1951.
//
// A stream is a sequence of blocks of bits, which begin and end anywhere in a byte. A block has its
// own Huffman codes: one for literals and lengths, one for distances. A length with a distance
// repeats bytes from the last 32 KiB, which may belong to earlier blocks.
//
//   1 bit   1 for the last block
//   2 bits  0: stored; 1: fixed codes; 2: the lengths of the codes follow
//   ...     symbols; 256 ends the block
#include "readers/zip.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace wheelscope {
namespace {

constexpr unsigned longest_code = 15, last_symbol = 256;

class Bits {
 public:
  explicit Bits(std::span<const std::byte> stream) : stream_(stream) {}

  // Makes 56 bits ready, more than any symbol has; zeros follow the end of the stream.
  void refill() {
    if (at_ + sizeof ready_ <= stream_.size()) [[likely]] {
      std::uint64_t word;
      std::memcpy(&word, stream_.data() + at_, sizeof word);
      ready_ |= word << count_;
      at_ += (63 - count_) / 8;
      count_ |= 56;
      return;
    }
    for (; count_ <= 56; count_ += 8, ++at_)
      ready_ |= (at_ < stream_.size() ? std::to_integer<std::uint64_t>(stream_[at_]) : 0) << count_;
  }

  std::uint64_t peek() const { return ready_; }
  unsigned peek(unsigned count) const { return ready_ & ((1U << count) - 1); }
  void skip(unsigned count) {
    ready_ >>= count;
    count_ -= count;
  }
  unsigned take(unsigned count) {
    const auto value = peek(count);
    skip(count);
    return value;
  }

  std::uint64_t position() const { return 8 * at_ - count_; }
  bool overran() const { return position() > 8 * stream_.size(); }

  // Returns the bytes from the next whole one on.
  std::span<const std::byte> rest() const {
    return stream_.subspan(std::min((position() + 7) / 8, stream_.size()));
  }
  void go_to(std::span<const std::byte> rest) {
    at_ = stream_.size() - rest.size();
    ready_ = count_ = 0;
  }

 private:
  std::span<const std::byte> stream_;
  std::size_t at_ = 0;
  std::uint64_t ready_ = 0;
  unsigned count_ = 0;
};

// The meaning of a code: a literal, the end of the block, or a length or distance with more bits.
struct Symbol {
  static constexpr std::uint32_t literal = 0x8000, end = 0x4000;
  std::uint32_t word = 0;  // all fields in one word, for one load

  constexpr unsigned code_bits() const { return word & 0xFF; }  // 0: none, or too long
  constexpr unsigned more_bits() const { return word >> 8 & 0x3F; }
  constexpr unsigned value() const { return word >> 16; }
  constexpr bool is(std::uint32_t kind) const { return word & kind; }
};

constexpr Symbol number(std::size_t value, std::uint32_t more_bits = 0) {
  return {static_cast<std::uint32_t>(value << 16 | more_bits << 8)};
}

constexpr auto lengths_and_literals = [] {
  std::array<Symbol, 288> symbols{};
  for (std::uint16_t i = 0; i < last_symbol; ++i) symbols[i] = {number(i).word | Symbol::literal};
  symbols[last_symbol] = {Symbol::end};
  std::uint16_t value = 3;
  for (std::size_t i = last_symbol + 1; i < 285; ++i) {
    const std::uint8_t extra = i < 265 ? 0 : (i - 261) / 4;
    symbols[i] = number(value, extra);
    value += 1 << extra;
  }
  symbols[285] = number(258);
  return symbols;
}();

constexpr auto distances = [] {
  std::array<Symbol, 32> symbols{};
  std::uint16_t value = 1;
  for (std::size_t i = 0; i < 30; ++i) {
    const std::uint8_t extra = i < 4 ? 0 : (i - 2) / 2;
    symbols[i] = number(value, extra);
    value += 1 << extra;
  }
  return symbols;
}();

constexpr auto plain_numbers = [] {
  std::array<Symbol, 19> symbols{};
  for (std::uint16_t i = 0; i < symbols.size(); ++i) symbols[i] = number(i);
  return symbols;
}();

// A Huffman code. Short codes are looked up in a table; long ones are rare and counted out.
template <unsigned table_bits>
class Code {
 public:
  // Returns false for lengths that zlib would reject: a code must be complete, or have one symbol.
  bool build(std::span<const std::uint8_t> lengths, std::span<const Symbol> symbols,
             bool may_be_small) {
    count_.fill(0);
    for (const auto length : lengths) ++count_[length];
    count_[0] = 0;
    int left = 1;
    std::array<std::uint16_t, longest_code + 2> first{}, next{};
    for (unsigned length = 1; length <= longest_code; ++length) {
      left = 2 * left - count_[length];
      if (left < 0) return false;
      first[length + 1] = first[length] + count_[length];
      next[length + 1] = static_cast<std::uint16_t>((next[length] + count_[length]) << 1);
    }
    const bool small = std::ranges::all_of(std::span(count_).subspan(2), [](auto n) { return !n; });
    if (left > 0 && !(may_be_small && small)) return false;
    if (left > 0) table_.fill({});
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const auto length = lengths[i];
      if (!length) continue;
      const Symbol symbol{symbols[i].word | length};
      sorted_[first[length]++] = symbol;
      unsigned reversed = 0;
      for (unsigned code = next[length]++, bit = 0; bit < length; ++bit, code >>= 1)
        reversed = reversed << 1 | (code & 1);
      if (length > table_bits) table_[reversed % table_.size()] = {};
      for (; length <= table_bits && reversed < table_.size(); reversed += 1U << length)
        table_[reversed] = symbol;
    }
    return true;
  }

  Symbol look_up(const Bits& bits) const { return table_[bits.peek(table_bits)]; }

  // Decodes a code that look_up() did not know; the result has no code bits if it is invalid.
  Symbol count_out(std::uint64_t rest) const {
    int code = 0, first = 0, index = 0;
    for (unsigned length = 1; length <= longest_code; ++length, rest >>= 1) {
      code |= rest & 1;
      if (code - count_[length] < first) return sorted_[index + (code - first)];
      index += count_[length];
      first = (first + count_[length]) << 1;
      code <<= 1;
    }
    return {};
  }

  Symbol next(Bits& bits) const {
    auto symbol = look_up(bits);
    if (!symbol.code_bits()) symbol = count_out(bits.peek());
    bits.skip(symbol.code_bits());
    return symbol;
  }

 private:
  std::array<Symbol, 1 << table_bits> table_{};
  std::array<std::uint16_t, longest_code + 1> count_{};
  std::array<Symbol, 288> sorted_{};
};

class Inflater {
 public:
  Inflater(std::span<const std::byte> stream, std::span<std::byte> room)
      : bits_(stream), start_(room.data()), out_(start_), end_(start_ + room.size()) {}

  std::optional<std::vector<DeflateBlock>> run() {
    const auto most = static_cast<std::size_t>(end_ - start_) / 1024 + 16;
    std::vector<DeflateBlock> blocks;
    for (bool last = false; !last;) {
      DeflateBlock block{.first_bit = bits_.position(), .at = written()};
      lowest_ = out_;
      bits_.refill();
      last = bits_.take(1);
      const auto kind = bits_.take(2);
      block.stored = kind == 0;
      if (!(kind == 0 ? stored() : read_codes(kind) && symbols()) || bits_.overran())
        return std::nullopt;
      block.end_bit = bits_.position();
      block.size = written() - block.at;
      block.reach = static_cast<std::uint64_t>(start_ + block.at - lowest_);
      if (blocks.size() < most) blocks.push_back(block);
    }
    if (out_ != end_) return std::nullopt;
    return blocks;
  }

 private:
  std::uint64_t written() const { return static_cast<std::uint64_t>(out_ - start_); }
  std::size_t left() const { return static_cast<std::size_t>(end_ - out_); }

  bool stored() {
    const auto rest = bits_.rest();
    if (rest.size() < 4) return false;
    std::array<std::uint16_t, 2> size;  // and its complement
    std::memcpy(size.data(), rest.data(), sizeof size);
    if ((size[0] ^ size[1]) != 0xFFFF || size[0] > left() || size[0] > rest.size() - 4)
      return false;
    if (size[0]) std::memcpy(out_, rest.data() + 4, size[0]);
    out_ += size[0];
    bits_.go_to(rest.subspan(4 + size[0]));
    return true;
  }

  bool read_codes(unsigned kind) {
    std::array<std::uint8_t, 288 + 32> lengths{};
    if (kind == 1) {
      for (std::size_t i = 0; i < 288; ++i)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
      std::fill(lengths.begin() + 288, lengths.end(), 5);
      return build(lengths, 288, 32);
    }
    if (kind != 2) return false;
    const auto literals = 257 + bits_.take(5), repeats = 1 + bits_.take(5), few = 4 + bits_.take(4);
    if (literals > 286 || repeats > 30) return false;
    static constexpr std::array<std::uint8_t, 19> order = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                           11, 4,  12, 3, 13, 2, 14, 1, 15};
    std::array<std::uint8_t, 19> length_bits{};
    for (unsigned i = 0; i < few; ++i) {
      bits_.refill();
      length_bits[order[i]] = static_cast<std::uint8_t>(bits_.take(3));
    }
    if (!lengths_code_.build(length_bits, plain_numbers, false)) return false;
    for (std::size_t i = 0; i < literals + repeats;) {
      bits_.refill();
      const auto symbol = lengths_code_.next(bits_);
      const auto value = symbol.value();
      if (!symbol.code_bits() || (value == 16 && i == 0)) return false;
      const auto length = value < 16 ? value : value == 16 ? lengths[i - 1] : 0;
      const auto times = value < 16    ? 1
                         : value == 16 ? 3 + bits_.take(2)
                         : value == 17 ? 3 + bits_.take(3)
                                       : 11 + bits_.take(7);
      if (times > literals + repeats - i) return false;
      std::fill_n(lengths.begin() + static_cast<std::ptrdiff_t>(i), times,
                  static_cast<std::uint8_t>(length));
      i += times;
    }
    return lengths[last_symbol] && build(lengths, literals, repeats);
  }

  bool build(std::span<const std::uint8_t> lengths, std::size_t literals, std::size_t repeats) {
    return literals_.build(lengths.first(literals), lengths_and_literals, true) &&
           distances_.build(lengths.subspan(literals, repeats), distances, true);
  }

  bool symbols() {
    auto bits = bits_;  // local copies: the compiler must assume that a written byte is a member
    auto *out = out_, *const end = end_;
    const std::byte *const start = start_, *lowest = lowest_;
    auto add_literal = [&](Symbol symbol) {
      *out++ = static_cast<std::byte>(symbol.value());
      bits.skip(symbol.code_bits());
      return literals_.look_up(bits);
    };
    bits.refill();
    for (auto symbol = literals_.look_up(bits);;) {
      if (symbol.is(Symbol::literal) &&
          end - out > 3) {  // often in groups; bits for five are ready
        symbol = add_literal(symbol);
        if (symbol.is(Symbol::literal)) symbol = add_literal(symbol);
        if (symbol.is(Symbol::literal)) symbol = add_literal(symbol);
        const bool more = symbol.is(Symbol::literal);
        if (more) symbol = add_literal(symbol);
        bits.refill();
        if (more) continue;
      }
      if (!symbol.code_bits()) symbol = literals_.count_out(bits.peek());
      if (!symbol.code_bits()) return false;
      if (symbol.is(Symbol::literal)) {
        if (out == end) return false;
        symbol = add_literal(symbol);
        bits.refill();
        continue;
      }
      bits.skip(symbol.code_bits());
      if (symbol.is(Symbol::end)) break;
      const std::size_t length = symbol.value() + bits.take(symbol.more_bits());
      const auto farther = distances_.next(bits);
      const std::size_t distance = farther.value() + bits.take(farther.more_bits());
      if (!farther.code_bits() || !distance || distance > static_cast<std::size_t>(out - start) ||
          !length || length > static_cast<std::size_t>(end - out))
        return false;
      bits.refill();
      symbol = literals_.look_up(bits);  // before the copy, which takes as long
      lowest = std::min<const std::byte*>(lowest, out - distance);
      repeat(out, end, distance, length);
      out += length;
    }
    bits_ = bits;
    out_ = out;
    lowest_ = lowest;
    return true;
  }

  static void repeat(std::byte* to, const std::byte* end, std::size_t distance,
                     std::size_t length) {
    constexpr std::size_t word = 16;
    const auto* from = to - distance;
    if (distance >= word && static_cast<std::size_t>(end - to) >= length + word) {
      for (auto* const stop = to + length; to < stop; to += word, from += word)
        std::memcpy(to, from, word);
    } else if (distance == 1) {
      std::memset(to, std::to_integer<int>(*from), length);
    } else {
      for (std::size_t i = 0; i < length; ++i) to[i] = from[i];
    }
  }

  Bits bits_;
  std::byte *start_, *out_, *end_;
  const std::byte* lowest_ = nullptr;  // first byte that the block refers to
  Code<7> lengths_code_;
  Code<11> literals_;
  Code<8> distances_;
};

}  // namespace

std::optional<std::vector<DeflateBlock>> inflate_blocks(std::span<const std::byte> stream,
                                                        std::span<std::byte> room) {
  return Inflater(stream, room).run();
}

}  // namespace wheelscope
