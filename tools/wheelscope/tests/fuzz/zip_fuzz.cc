// Fuzzes the zip reader: every member of whatever looks like an archive is inflated, within small
// limits. The input is also taken for deflated data, in which our inflater must find what zlib
// finds.
#include <zlib.h>

#include <cstdlib>
#include <cstring>

#include "readers/zip.h"

namespace {

void compare_with_zlib(const unsigned char* data, std::size_t size) {
  static unsigned char expected[64 << 10], found[sizeof expected];
  z_stream stream{};
  inflateInit2(&stream, -15);
  stream.next_in = const_cast<unsigned char*>(data);
  stream.avail_in = static_cast<uInt>(size);
  stream.next_out = expected;
  stream.avail_out = sizeof expected;
  const bool sound = inflate(&stream, Z_FINISH) == Z_STREAM_END;
  inflateEnd(&stream);
  const auto room = std::as_writable_bytes(std::span(found).first(stream.total_out));
  const auto blocks = wheelscope::inflate_blocks(std::as_bytes(std::span(data, size)), room);
  if (blocks.has_value() != sound || (sound && std::memcmp(found, expected, room.size()) != 0))
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace wheelscope;
  compare_with_zlib(data, size);
  const Bytes file(std::as_bytes(std::span(data, size)));
  const auto archive =
      read_zip(file, {.members = 1000, .member_size = 1 << 20, .total_size = 8 << 20});
  if (!archive) return 0;
  for (const auto& member : archive->members) {
    if (member.readable) (void)read_member(file, member);
  }
  return 0;
}
