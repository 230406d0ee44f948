// Bytes, the one way to read input: slice() checks every bound, and nothing else can fail. Errors
// and problems say what could not be read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wheelscope {

// A fault of an input and its place: an offset into the file or member that was being read.
struct Error {
  std::uint64_t offset = 0;
  std::string what;
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(std::uint64_t offset, std::string what) {
  return std::unexpected(Error{offset, std::move(what)});
}
inline std::unexpected<Error> fail(const std::string& path, const std::string& what) {
  return fail(0, path + ": " + what);
}

// Unwraps a Result or returns its error from the enclosing function.
#define TRY(expression)                                          \
  __extension__({                                                \
    auto try_result = (expression);                              \
    if (!try_result) return std::unexpected(try_result.error()); \
    std::move(*try_result);                                      \
  })

#define TRY_VOID(expression)                                                               \
  do {                                                                                     \
    if (auto try_done = (expression); !try_done) return std::unexpected(try_done.error()); \
  } while (false)

// Makes the bytes at `offset` of a source readable; returns false if it cannot.
using Supply = std::function<bool(std::uint64_t offset, std::uint64_t length)>;

// A view of input bytes that remembers its place in the file and its byte order. A reader slices
// out a record of known size (checked), then picks fixed fields from it. A field outside the slice
// is a bug of the reader, and aborts.
//
// Not every source has all of its bytes at hand: a file behind a network fetches bytes on request.
// window() is a view whose bytes were not requested yet; slice() requests them. Reading a window
// without slicing it is a bug too.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(std::span<const std::byte> data, std::uint64_t origin = 0, bool big_endian = false)
      : data_(data), origin_(origin), big_endian_(big_endian) {}
  // Views all of a source that fetches on demand.
  Bytes(std::span<const std::byte> data, const Supply* supply)
      : data_(data), supply_(supply), given_(!supply) {}

  std::uint64_t size() const { return data_.size(); }
  std::uint64_t origin() const { return origin_; }
  std::span<const std::byte> span() const {
    if (!given_) std::abort();
    return data_;
  }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(span().data()), data_.size()};
  }
  Bytes in_big_endian() const { return with_order(true); }
  Bytes in_little_endian() const { return with_order(false); }

  Result<Bytes> window(std::uint64_t offset, std::uint64_t length, std::string_view what) const {
    if (offset > data_.size() || length > data_.size() - offset) {
      return std::unexpected(Error{origin_ + offset, std::string(what) + " of " +
                                                         std::to_string(length) +
                                                         " bytes runs past the end (" +
                                                         std::to_string(data_.size()) + " bytes)"});
    }
    auto part = *this;
    part.data_ = data_.subspan(offset, length);
    part.origin_ = origin_ + offset;
    return part;
  }

  Result<Bytes> slice(std::uint64_t offset, std::uint64_t length, std::string_view what) const {
    auto part = window(offset, length, what);
    if (!part || part->given_) return part;
    if (!(*supply_)(part->origin_, length)) {
      return std::unexpected(Error{part->origin_, std::string(what) + " was not given"});
    }
    part->given_ = true;
    return part;
  }

  // Returns this view with all of its bytes requested.
  Result<Bytes> whole(std::string_view what) const { return slice(0, size(), what); }

  // Returns the bytes up to a terminating NUL.
  Result<std::string_view> c_string(std::uint64_t offset, std::string_view what) const {
    constexpr std::uint64_t step = 4096;  // bytes per request
    auto rest = window(offset, offset <= size() ? size() - offset : 0, what);
    if (!rest) return std::unexpected(rest.error());
    for (std::uint64_t length = 0; length < rest->size();) {
      length = given_ ? rest->size() : std::min(length + step, rest->size());
      const auto start = rest->slice(0, length, what);
      if (!start) return std::unexpected(start.error());
      if (auto end = start->text().find('\0'); end != std::string_view::npos)
        return start->text().substr(0, end);
    }
    return std::unexpected(Error{rest->origin(), std::string(what) + " has no end"});
  }

  std::uint8_t u8(std::uint64_t offset) const { return field<std::uint8_t>(offset); }
  std::uint16_t u16(std::uint64_t offset) const { return field<std::uint16_t>(offset); }
  std::uint32_t u32(std::uint64_t offset) const { return field<std::uint32_t>(offset); }
  std::uint64_t u64(std::uint64_t offset) const { return field<std::uint64_t>(offset); }

 private:
  Bytes with_order(bool big_endian) const {
    auto other = *this;
    other.big_endian_ = big_endian;
    return other;
  }

  template <class T>
  T field(std::uint64_t offset) const {
    if (!given_ || offset > data_.size() || sizeof(T) > data_.size() - offset) std::abort();
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      auto byte = static_cast<T>(data_[offset + i]);
      value |= static_cast<T>(byte << 8 * (big_endian_ ? sizeof(T) - 1 - i : i));
    }
    return value;
  }

  std::span<const std::byte> data_;
  std::uint64_t origin_ = 0;
  const Supply* supply_ = nullptr;
  bool big_endian_ = false;
  bool given_ = true;
};

struct Problem {
  std::string id;     // kind: zip-crc, elf-broken, record-hash ...
  std::string place;  // a member or library; empty: the whole file
  std::string what;
  std::optional<std::uint64_t> offset = {};  // in the file, or in the member named by `place`
};

// A damaged archive can have a million problems of one kind: only the first ones are listed, the
// others are counted.
struct ProblemList {
  static constexpr std::size_t most_of_a_kind = 100;

  std::vector<Problem> listed;
  std::map<std::string, std::uint64_t> counts;  // by id, of all

  void add(Problem problem) {
    if (++counts[problem.id] <= most_of_a_kind) listed.push_back(std::move(problem));
  }
  void add(const char* id, const std::string& place, const Error& error) {
    add({.id = id, .place = place, .what = error.what, .offset = error.offset});
  }
  void add(ProblemList&& others) {
    for (auto& problem : others.listed) add(std::move(problem));
    for (const auto& [id, count] : others.counts) {
      if (count > most_of_a_kind) counts[id] += count - most_of_a_kind;
    }
  }
};

}  // namespace wheelscope
