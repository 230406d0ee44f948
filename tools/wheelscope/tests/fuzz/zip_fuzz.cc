// Fuzzes the zip reader: every member of whatever looks like an archive is inflated, within small
// limits.
#include "readers/zip.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace wheelscope;
  const Bytes file(std::as_bytes(std::span(data, size)));
  const auto archive =
      read_zip(file, {.members = 1000, .member_size = 1 << 20, .total_size = 8 << 20});
  if (!archive) return 0;
  for (const auto& member : archive->members) {
    if (member.readable) (void)read_member(file, member);
  }
  return 0;
}
