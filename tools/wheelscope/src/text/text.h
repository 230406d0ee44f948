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

// Returns where `wanted` is in `text` at or after `from`; npos if nowhere. The time is at worst
// proportional to both lengths, unlike that of string_view::find().
std::size_t find_in(std::string_view text, std::string_view wanted, std::size_t from = 0);

// Replaces each `from`; the time is proportional to the text's length.
std::string replace_all(std::string text, std::string_view from, std::string_view to);

std::string joined(const std::vector<std::string>& words, std::string_view separator = ", ");
std::vector<std::string> split(std::string_view text, char separator);

// Splits at blanks, tabs and line ends.
std::vector<std::string> words_of(std::string_view text);

// Removes blanks, tabs and line ends from both ends.
std::string_view trim(std::string_view text);

// True if the brackets of JSON, including those in texts, are nested so deep that a parser would
// recurse too often.
bool nests_deeper(std::string_view json, std::size_t deepest);

std::string lower(std::string_view text);

// True for the first character of a name in Python; every byte of a letter beyond ASCII counts.
constexpr bool starts_name(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80;
}

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// True for ASCII's letters and digits.
constexpr bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Pads a text with blanks to `width`.
std::string padded(std::string text, std::size_t width);

// Return x.so and pkg/lib for pkg/lib/x.so; the folder of a name without a slash is empty.
std::string base_name(std::string_view path);
std::string folder_of(std::string_view path);

// Returns x for pkg/lib/x.so.1.
std::string stem_of(std::string_view path);

// Returns name, name@@VERSION (the default version) or name@VERSION, as nm writes it.
std::string spelled(std::string_view symbol, std::string_view version, bool is_default);

// Returns a C++ symbol as its source spelt it; any other symbol unchanged.
std::string demangle(const std::string& symbol);

// Makes bytes of a file safe for a terminal: writes control characters and anything but UTF-8 as
// \xNN, so that no name in an archive can move the cursor or change a title.
std::string printable(std::string_view text);

// Returns the 32 bytes of a SHA-256.
std::string sha256(std::string_view bytes);

// Returns two digits per byte, as hashes are written.
std::string hexadecimal(std::string_view bytes);

// True if `a` is an older version than `b` (2.9 than 2.10, 525.60.13 than 525.105). Missing numbers
// count as 0; other characters separate numbers.
bool older(std::string_view a, std::string_view b);

// Returns 12 for 12.9.
inline std::string major_of(std::string_view version) {
  return std::string(version.substr(0, version.find('.')));
}

// Returns 2.10 for 2.10.1.
inline std::string minor_of(std::string_view version) {
  return std::string(version.substr(0, version.find('.', version.find('.') + 1)));
}

// Returns a text such as 484 MB or 1.2 kB.
std::string human_size(std::uint64_t bytes);

// Returns a text such as "1 file" or "2 files".
std::string counted(std::uint64_t count, std::string_view noun);

// Returns the known word of which `word` is most likely a misspelling; empty if none is close.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace wheelscope
