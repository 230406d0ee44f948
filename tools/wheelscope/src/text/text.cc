// Splits, joins, pads, demangles and escapes text.
#include "text/text.h"

// OpenSSL's plain hash functions: setting up the providers behind its newer interface takes longer
// than hashing a small wheel.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <cxxabi.h>
#include <openssl/sha.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <numeric>
#include <sstream>

namespace wheelscope {
namespace {

// Returns the length of the UTF-8 character at the start of `text`; 0 if it is invalid.
std::size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0x80         ? 1
                             : first >> 5 == 0x06 ? 2
                             : first >> 4 == 0x0E ? 3
                             : first >> 3 == 0x1E ? 4
                                                  : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

bool is_control(std::string_view character) {
  if (character.size() == 1)
    return character[0] < 0x20 || character[0] == 0x7F;  // ASCII: others are longer
  // U+0080 to U+009F; U+200E, U+200F, U+2028 to U+202E and U+2066 to U+2069 reorder text.
  if (character.size() == 2) return character[0] == '\xC2' && character[1] < '\xA0';
  if (character.size() != 3 || character[0] != '\xE2') return false;
  const auto second = static_cast<unsigned char>(character[1]),
             third = static_cast<unsigned char>(character[2]);
  return (second == 0x80 && (third == 0x8E || third == 0x8F || (third >= 0xA8 && third <= 0xAE))) ||
         (second == 0x81 && third >= 0xA6 && third <= 0xA9);
}

std::uint64_t take_number(std::string_view& text) {
  std::uint64_t number = 0;
  while (!text.empty() && !is_digit(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_digit(text.front())) {
    number = number * 10 + static_cast<std::uint64_t>(text.front() - '0');
    text.remove_prefix(1);
  }
  return number;
}

}  // namespace

std::size_t find_in(std::string_view text, std::string_view wanted, std::size_t from) {
  if (from > text.size()) return text.npos;
  const auto* found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data())
               : text.npos;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  std::string done;
  std::size_t next = 0;
  for (auto at = text.find(from); at != text.npos; at = text.find(from, next)) {
    done.append(text, next, at - next).append(to);
    next = at + from.size();
  }
  return next == 0 ? text : done.append(text, next);
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const auto& word : words) {
    if (&word != words.data()) text += separator;
    text += word;
  }
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == text.npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream words{std::string(text)};
  return {std::istream_iterator<std::string>(words), {}};
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

bool nests_deeper(std::string_view json, std::size_t deepest) {
  std::size_t depth = 0;
  for (const char c : json) {
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') depth -= depth > 0;
    if (depth > deepest) return true;
  }
  return false;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (auto& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string stem_of(std::string_view path) {
  const auto name = base_name(path);
  return name.substr(0, name.find('.'));
}

std::string folder_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == path.npos ? std::string() : std::string(path.substr(0, slash));
}

std::string spelled(std::string_view symbol, std::string_view version, bool is_default) {
  std::string text(symbol);
  if (!version.empty()) text.append(is_default ? "@@" : "@").append(version);
  return text;
}

std::string demangle(const std::string& symbol) {
  constexpr std::size_t longest = 4096;  // longer names would be unreadable
  if (!symbol.starts_with("_Z") || symbol.size() > longest) return symbol;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : symbol;
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto length = utf8_length(text);
    const auto character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length > 0 && !is_control(character)) {
      result += character;
    } else {
      for (const char c : character) {
        std::array<char, 8> escaped{};
        std::snprintf(escaped.data(), escaped.size(), "\\x%02x", static_cast<unsigned char>(c));
        result += escaped.data();
      }
    }
    text.remove_prefix(character.size());
  }
  return result;
}

std::string sha256(std::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {digits[byte / 16], digits[byte % 16]};
  }
  return text;
}

std::string human_size(std::uint64_t bytes) {
  constexpr std::array units{" bytes", " kB", " MB", " GB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 || value >= 100 ? "%.0f%s" : "%.1f%s", value,
                units[unit]);
  return text.data();
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = 3;  // more than two slips make another word
  for (const auto& candidate : known) {
    std::vector<std::size_t> row(candidate.size() + 1);  // of edit distances, as Levenshtein's
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < word.size(); ++i) {
      auto diagonal = row[0];
      row[0] = i + 1;
      for (std::size_t j = 0; j < candidate.size(); ++j) {
        const auto change = diagonal + (word[i] == candidate[j] ? 0 : 1);
        diagonal = row[j + 1];
        row[j + 1] = std::min({change, row[j] + 1, diagonal + 1});
      }
    }
    if (row.back() < best_distance) {
      best = candidate;
      best_distance = row.back();
    }
  }
  return best;
}

bool older(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const auto left = take_number(a), right = take_number(b);
    if (left != right) return left < right;
  }
  return false;
}

}  // namespace wheelscope
