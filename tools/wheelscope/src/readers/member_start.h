// The first bytes of a member of a zip archive, without the rest of it.
#pragma once

#include <memory>
#include <vector>

#include "readers/zip.h"

struct z_stream_s;

namespace wheelscope {

class MemberStart {
 public:
  // `member` must have been located.
  MemberStart(Bytes file, const ZipMember& member);
  MemberStart(const MemberStart&) = delete;
  MemberStart& operator=(const MemberStart&) = delete;
  ~MemberStart();

  // Inflates another block of the archive. False: the member is at its end.
  Result<bool> grow();

  // What there is so far; grow() makes views of it invalid.
  Bytes bytes() const { return Bytes(contents_); }

 private:
  Bytes file_;
  const ZipMember& member_;
  std::uint64_t used_ = 0;  // of its compressed bytes
  std::vector<std::byte> contents_;
  std::unique_ptr<z_stream_s> stream_;
};

}  // namespace wheelscope
