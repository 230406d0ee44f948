// Small operations on text and lists that several parts share: splitting, joining, names for
// people.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace wheelscope {

template <class List, class Value, class Projection = std::identity>
bool contains(const List& list, const Value& value, Projection projection = {}) {
  return std::ranges::find(list, value, projection) != std::ranges::end(list);
}

// Defines the names of an enumeration's values, in their order, as name_of().
#define NAMES(Enumeration, ...)                           \
  inline const char* name_of(Enumeration value) {         \
    static constexpr const char* names[] = {__VA_ARGS__}; \
    return names[static_cast<std::size_t>(value)];        \
  }

// Where `wanted` lies in `text` at or after `from`; npos: nowhere. In time in proportion to both
// lengths, at worst, which string_view::find() is not.
std::size_t find_in(std::string_view text, std::string_view wanted, std::size_t from = 0);

std::string joined(const std::vector<std::string>& words, std::string_view separator = ", ");
std::vector<std::string> split(std::string_view text, char separator);

// Separated by blanks, tabs or line ends.
std::vector<std::string> words_of(std::string_view text);

// Without blanks, tabs and line ends at both ends.
std::string_view trim(std::string_view text);

// Whether brackets of JSON, those in texts too, are nested so deep that who parses it would recurse
// too often.
bool nests_deeper(std::string_view json, std::size_t deepest);

std::string lower(std::string_view text);

// Of a name in Python; every byte of a letter beyond ASCII counts.
constexpr bool starts_name(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80;
}

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Filled with blanks up to `width`.
std::string padded(std::string text, std::size_t width);

// pkg/lib/x.so -> x.so, and pkg/lib; a name without a slash has an empty folder.
std::string base_name(std::string_view path);
std::string folder_of(std::string_view path);

// x of pkg/lib/x.so.1
std::string stem_of(std::string_view path);

// name, name@@VERSION (the default version) or name@VERSION, as nm writes it.
std::string spelled(std::string_view symbol, std::string_view version, bool is_default);

// A C++ symbol as its source spelt it; any other symbol unchanged.
std::string demangle(const std::string& symbol);

// Bytes of a file as a terminal may get them: control characters, and what is not UTF-8, as \xNN,
// so that no name in an archive can move the cursor or change a title.
std::string printable(std::string_view text);

// The 32 bytes of a SHA-256.
std::string sha256(std::string_view bytes);

// Two digits a byte, as hashes are written.
std::string hexadecimal(std::string_view bytes);

// Whether `a` is an older version than `b` (2.9 than 2.10, 525.60.13 than 525.105); missing numbers
// count as 0, other characters separate numbers.
bool older(std::string_view a, std::string_view b);

// 12 of 12.9
inline std::string major_of(std::string_view version) {
  return std::string(version.substr(0, version.find('.')));
}

// 2.10 of 2.10.1
inline std::string minor_of(std::string_view version) {
  return std::string(version.substr(0, version.find('.', version.find('.') + 1)));
}

// 484 MB, 1.2 kB.
std::string human_size(std::uint64_t bytes);

// 1 file, 2 files.
std::string counted(std::uint64_t count, std::string_view noun);

// The word of `known` that `word` is most likely a misspelling of; empty: none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace wheelscope
