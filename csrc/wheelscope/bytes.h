// Bytes, the one way to look into input: slice() checks every bound, and nothing else is fallible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace wheelscope {

// What is wrong with an input, and where: an offset into the file or member that was being read.
struct Error {
  std::uint64_t offset = 0;
  std::string what;
};

template <class T>
using Result = std::expected<T, Error>;

// Unwraps a Result or returns its error from the enclosing function.
#define TRY(expression)                                          \
  __extension__({                                                \
    auto try_result = (expression);                              \
    if (!try_result) return std::unexpected(try_result.error()); \
    std::move(*try_result);                                      \
  })

// A view of input bytes that remembers its place in the file and its byte order. A reader slices
// out a record of known size (checked), then picks fixed fields from it; a field outside of the
// slice is a bug of the reader: it aborts.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(std::span<const std::byte> data, std::uint64_t origin = 0, bool big_endian = false)
      : data_(data), origin_(origin), big_endian_(big_endian) {}

  std::uint64_t size() const { return data_.size(); }
  std::uint64_t origin() const { return origin_; }
  std::span<const std::byte> span() const { return data_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(data_.data()), data_.size()};
  }
  Bytes in_big_endian() const { return Bytes(data_, origin_, true); }

  Result<Bytes> slice(std::uint64_t offset, std::uint64_t length, std::string_view what) const {
    if (offset > data_.size() || length > data_.size() - offset) {
      return std::unexpected(Error{origin_ + offset, std::string(what) + " of " +
                                                         std::to_string(length) +
                                                         " bytes runs past the end (" +
                                                         std::to_string(data_.size()) + " bytes)"});
    }
    return Bytes(data_.subspan(offset, length), origin_ + offset, big_endian_);
  }

  // The bytes up to a terminating NUL.
  Result<std::string_view> c_string(std::uint64_t offset, std::string_view what) const {
    auto rest = slice(offset, offset <= size() ? size() - offset : 0, what);
    if (!rest) return std::unexpected(rest.error());
    auto end = rest->text().find('\0');
    if (end == std::string_view::npos) {
      return std::unexpected(Error{rest->origin(), std::string(what) + " has no end"});
    }
    return rest->text().substr(0, end);
  }

  std::uint8_t u8(std::uint64_t offset) const { return field<std::uint8_t>(offset); }
  std::uint16_t u16(std::uint64_t offset) const { return field<std::uint16_t>(offset); }
  std::uint32_t u32(std::uint64_t offset) const { return field<std::uint32_t>(offset); }
  std::uint64_t u64(std::uint64_t offset) const { return field<std::uint64_t>(offset); }

 private:
  template <class T>
  T field(std::uint64_t offset) const {
    if (offset > data_.size() || sizeof(T) > data_.size() - offset) std::abort();
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      auto byte = static_cast<T>(data_[offset + i]);
      value |= static_cast<T>(byte << 8 * (big_endian_ ? sizeof(T) - 1 - i : i));
    }
    return value;
  }

  std::span<const std::byte> data_;
  std::uint64_t origin_ = 0;
  bool big_endian_ = false;
};

}  // namespace wheelscope
