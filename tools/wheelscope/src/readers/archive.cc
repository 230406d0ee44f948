// Reads archives of `ar`: "!<arch>\n", then members, each a header of 60 bytes in text (name, date,
// owner, group, mode, size, end mark) and its contents, padded to an even offset. Members named
// "/", "/SYM64/" and "//" are tables. Spec: System V ABI, "archive file".
#include "readers/archive.h"

#include "text/text.h"

namespace wheelscope {
namespace {

constexpr std::string_view magic = "!<arch>\n";
constexpr std::uint64_t header_size = 60;

Result<std::uint64_t> parse_size(Bytes field) {
  std::uint64_t size = 0;
  const auto digits = trim(field.text());
  for (const char c : digits) {
    if (c < '0' || c > '9') return fail(field.origin(), "archive member without a size");
    size = size * 10 + static_cast<std::uint64_t>(c - '0');  // ten digits at most
  }
  return size;
}

}  // namespace

bool looks_like_archive(Bytes file) {
  const auto start = file.slice(0, magic.size(), "magic");
  return start && start->text() == magic;
}

Result<void> for_each_member(Bytes file, const std::function<void(Bytes contents)>& use) {
  for (auto at = magic.size(); at < file.size();) {
    const auto header = TRY(file.slice(at, header_size, "archive header"));
    if (header.text().substr(58) != "`\n") return fail(header.origin(), "no archive header here");
    const auto size = TRY(parse_size(*header.slice(48, 10, "size")));
    const auto contents = TRY(file.window(at + header_size, size, "archive member"));
    const auto name = trim(header.text().substr(0, 16));
    if (name != "/" && name != "//" && name != "/SYM64/") use(contents);
    at += header_size + size + size % 2;
  }
  return {};
}

}  // namespace wheelscope
