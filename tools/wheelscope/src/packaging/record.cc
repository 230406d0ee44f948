// Parses RECORD and computes the hashes that it may have. Spec: PyPA's binary distribution format.
#include "packaging/record.h"

// OpenSSL's plain hash functions: setting up the providers behind its newer interface takes longer
// than hashing a small wheel.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "text/text.h"

namespace wheelscope {
namespace {

// One field of a CSV line, quoted or not; moves `text` past the field and its separator.
std::string take_field(std::string_view& text) {
  std::string field;
  if (text.starts_with('"')) {
    text.remove_prefix(1);
    while (!text.empty()) {
      const char c = text.front();
      text.remove_prefix(1);
      if (c != '"')
        field += c;
      else if (text.starts_with('"'))
        field += '"', text.remove_prefix(1);
      else
        break;
    }
  }
  const auto end = std::min(text.find(','), text.size());
  field += text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return field;
}

std::string base64(std::span<const unsigned char> digest) {
  static constexpr char alphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  unsigned bits = 0, buffer = 0;
  for (auto byte : digest) {
    buffer = buffer << 8 | byte;
    for (bits += 8; bits >= 6; bits -= 6) text += alphabet[buffer >> (bits - 6) & 63];
  }
  if (bits > 0) text += alphabet[buffer << (6 - bits) & 63];
  return text;
}

}  // namespace

std::string record_line(const std::string& path, const Pieces& contents) {
  auto field = path;
  if (path.find_first_of(",\"\r\n") != path.npos) {
    field = "\"";
    for (const char c : path) field += c == '"' ? "\"\"" : std::string(1, c);
    field += '"';
  }
  return field + "," + record_hash(contents) + "," + std::to_string(contents.size());
}

std::string RecordRewriter::text(const std::string& own_path) const {
  std::string result;
  for (auto rest = text_; !rest.empty();) {
    const auto end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const auto line = rest.substr(0, end);
    rest.remove_prefix(end);
    const auto parsed = parse_record(line);
    const auto path = parsed.empty() ? "" : parsed.front().path;
    if (path == own_path) {
      for (const auto& one : added_) result += one + "\n";
    }
    const auto changed = lines_.find(path);
    if (parsed.empty() || changed == lines_.end()) {
      result += line;
      if (!line.ends_with('\n')) result += '\n';
    } else if (!changed->second.empty()) {
      result += changed->second + "\n";
    }
  }
  return result;
}

std::string sha256_digits(std::span<const std::byte> contents) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(contents.data()), contents.size(), digest.data());
  return hexadecimal({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

std::vector<RecordLine> parse_record(std::string_view text) {
  std::vector<RecordLine> lines;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    auto& record = lines.emplace_back();
    record.path = take_field(line);
    record.hash = take_field(line);
    record.size = take_field(line);
  }
  return lines;
}

std::string algorithm_of(std::string_view hash) {
  const auto sign = hash.find('=');
  return sign == hash.npos ? std::string() : lower(hash.substr(0, sign));
}

bool is_strong(std::string_view algorithm) {
  static constexpr std::string_view strong[] = {"sha256",   "sha384",   "sha512",  "sha3_256",
                                                "sha3_384", "sha3_512", "blake2b", "blake2s"};
  return contains(strong, algorithm);
}

std::string record_hash(const Pieces& contents, const std::string& algorithm) {
  std::array<unsigned char, SHA512_DIGEST_LENGTH> digest{};
  auto each = [&](auto* update, auto* context) {
    for (const auto& piece : contents.list()) update(context, piece.data(), piece.size());
  };
  std::size_t length = 0;
  if (algorithm == "sha256") {
    SHA256_CTX context;
    SHA256_Init(&context);
    each(SHA256_Update, &context);
    SHA256_Final(digest.data(), &context);
    length = SHA256_DIGEST_LENGTH;
  } else if (algorithm == "sha384") {
    SHA512_CTX context;
    SHA384_Init(&context);
    each(SHA384_Update, &context);
    SHA384_Final(digest.data(), &context);
    length = SHA384_DIGEST_LENGTH;
  } else if (algorithm == "sha512") {
    SHA512_CTX context;
    SHA512_Init(&context);
    each(SHA512_Update, &context);
    SHA512_Final(digest.data(), &context);
    length = SHA512_DIGEST_LENGTH;
  } else {
    return {};
  }
  return algorithm + "=" + base64(std::span(digest).first(length));
}

}  // namespace wheelscope
