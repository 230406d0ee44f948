// Inflates a member piece by piece, by zlib: libdeflate takes whole members only.
#include "readers/zip.h"

#include <zlib.h>

#include <algorithm>
#include <array>

namespace wheelscope {

MemberStart::MemberStart(Bytes file, const ZipMember& member)
    : file_(file), member_(member), stream_(std::make_unique<z_stream_s>()) {
  constexpr int raw_deflate = -15;
  *stream_ = {};
  if (inflateInit2(stream_.get(), raw_deflate) != Z_OK) stream_.reset();
}

MemberStart::~MemberStart() {
  if (stream_) inflateEnd(stream_.get());
}

Result<bool> MemberStart::grow() {
  constexpr std::uint64_t block = 64 << 10;  // as sources fetch them
  const auto at = member_.data_offset + used_;
  // Read as much again as before, up to whole blocks: if the first blocks are not enough, few
  // requests must do.
  const auto wanted = std::max(block, used_) + block - 1;
  const auto length = std::min(wanted - (at + wanted) % block, member_.compressed_size - used_);
  if (length == 0) return false;
  const auto input = TRY(file_.slice(at, length, "compressed data"));
  used_ += length;
  if (member_.method == 0) {
    contents_.insert(contents_.end(), input.span().begin(), input.span().end());
    return true;
  }
  auto fail = [&] { return wheelscope::fail(at, "the deflated data is damaged"); };
  if (!stream_) return fail();
  std::array<std::byte, block> output;
  stream_->next_in = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(input.span().data()));
  stream_->avail_in = static_cast<unsigned>(length);
  do {
    stream_->next_out = reinterpret_cast<unsigned char*>(output.data());
    stream_->avail_out = static_cast<unsigned>(output.size());
    const int code = inflate(stream_.get(), Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) return fail();
    const auto fresh = output.size() - stream_->avail_out;
    if (contents_.size() + fresh > member_.size) return fail();
    contents_.insert(contents_.end(), output.begin(),
                     output.begin() + static_cast<std::ptrdiff_t>(fresh));
    if (code == Z_STREAM_END) break;
  } while (stream_->avail_out == 0);
  return true;
}

}  // namespace wheelscope
