// The zip reader: the members of an archive, its faults, and the bytes of a member.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "source/bytes.h"
#include "source/source.h"

struct z_stream_s;

namespace wheelscope {

// Limits on the sizes that an archive claims; a member beyond them is a problem and is not read.
struct ZipLimits {
  std::uint64_t members = 1'000'000;
  std::uint64_t member_size = std::uint64_t{8} << 30;
  std::uint64_t total_size = std::uint64_t{64} << 30;
};

struct ZipMember {
  std::string name;
  std::uint64_t central_offset = 0;  // of its header in the central directory
  std::uint64_t header_offset = 0;   // of the local header
  std::uint64_t data_offset = 0;
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  std::uint32_t crc32 = 0;
  std::uint16_t method = 0;  // 0 stored, 8 deflated
  bool readable = true;      // false: a problem says why it cannot be read

  bool is_folder() const { return name.ends_with('/'); }
};

struct ZipArchive {
  std::vector<ZipMember> members;  // in the order of the central directory
  ProblemList problems;            // zip-duplicate, zip-crc ...
};

// Each member has a local header in front of its data. `left`: if every byte has to be fetched,
// these headers are checked only when the member is read.
enum class LocalHeaders { checked, left };

// Reads the directory. Fails only if there is none; everything else is a problem of a member.
Result<ZipArchive> read_zip(Bytes file, const ZipLimits& limits = {},
                            LocalHeaders local_headers = LocalHeaders::checked);

// Requests the header in front of a member and its data, or the first `most` bytes of both, in one
// request. Bytes that are not available make the read fail later.
void ask_for(Bytes file, const ZipMember& member, std::uint64_t most = ~std::uint64_t{0});

// Checks a local header that read_zip() left unchecked, and finds where the member's data starts.
Result<void> locate_data(Bytes file, ZipMember& member);

// A block of a deflated stream. Unchanged ones can be copied into another stream
// (writers/deflate_writer.cc).
struct DeflateBlock {
  std::uint64_t first_bit = 0, end_bit = 0;  // in the stream
  std::uint64_t at = 0, size = 0;            // in the contents
  bool stored = false;                       // as it is, from the next whole byte on
};

// Inflates with zlib, which tells where the stream's blocks are, but takes twice as long as
// libdeflate. Fills `room`. Returns nothing if the stream is damaged or its contents do not fit
// exactly. If a stream has more blocks than a compressor would make, the later ones are not listed.
std::optional<std::vector<DeflateBlock>> inflate_blocks(std::span<const std::byte> stream,
                                                        std::span<std::byte> room);

// The place for the contents of a deflated member.
enum class Room { memory, disk };

// Returns where there is room for a member of a wheel of this size; nothing if nowhere.
std::optional<Room> room_for(const ZipMember& member, std::uint64_t file_size);

// Returns the contents of a member: a view into the archive (stored) or memory of its own
// (deflated). Checks size and CRC. Lists the blocks of a deflated member if asked to.
std::expected<Source, Problem> read_member(Bytes file, const ZipMember& member,
                                           Room room = Room::memory,
                                           std::vector<DeflateBlock>* blocks = nullptr);

// The first bytes of a member of a zip archive, without the rest of it.
class MemberStart {
 public:
  // `member` must have been located.
  MemberStart(Bytes file, const ZipMember& member);
  MemberStart(const MemberStart&) = delete;
  MemberStart& operator=(const MemberStart&) = delete;
  ~MemberStart();

  // Inflates another block of the archive; returns false at the end of the member.
  Result<bool> grow();

  // Returns the contents so far; grow() invalidates views of them.
  Bytes bytes() const { return Bytes(contents_); }

 private:
  Bytes file_;
  const ZipMember& member_;
  std::uint64_t used_ = 0;  // of its compressed bytes
  std::vector<std::byte> contents_;
  std::unique_ptr<z_stream_s> stream_;
};

}  // namespace wheelscope
