// Parses RECORD and computes the hashes in it. Spec: PyPA's binary distribution format.
#include "packaging/record.h"

#define OPENSSL_SUPPRESS_DEPRECATED  // see text.cc
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "text/text.h"

namespace wheelscope {
namespace {

// Takes one field of a CSV line, quoted or not; moves `text` past the field and its separator.
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

// Encodes in the alphabet for addresses, without padding.
std::string base64(std::string_view digest) {
  std::string text((digest.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(digest.data()),
                                   static_cast<int>(digest.size()));
  text.resize(static_cast<std::size_t>(size));
  std::erase(text, '=');
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

template <class Context>
std::string digest_of(const Pieces& contents, std::size_t length, int (*start)(Context*),
                      int (*add)(Context*, const void*, std::size_t),
                      int (*finish)(unsigned char*, Context*)) {
  Context context;
  start(&context);
  for (const auto& piece : contents.list()) add(&context, piece.data(), piece.size());
  std::string digest(length, '\0');
  finish(reinterpret_cast<unsigned char*>(digest.data()), &context);
  return digest;
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
  std::string digest;
  if (algorithm == "sha256")
    digest = digest_of(contents, SHA256_DIGEST_LENGTH, SHA256_Init, SHA256_Update, SHA256_Final);
  else if (algorithm == "sha384")
    digest = digest_of(contents, SHA384_DIGEST_LENGTH, SHA384_Init, SHA384_Update, SHA384_Final);
  else if (algorithm == "sha512")
    digest = digest_of(contents, SHA512_DIGEST_LENGTH, SHA512_Init, SHA512_Update, SHA512_Final);
  else
    return {};
  return algorithm + "=" + base64(digest);
}

}  // namespace wheelscope
