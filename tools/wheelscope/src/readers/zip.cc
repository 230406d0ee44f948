// Reads zip archives the way an installer does: from the central directory at the end of the file.
//
//   [local header, name, extra, data] ...
//   [central header, name, extra, comment] ...
//   [zip64 end] [end record]
//
// The end record says where the central directory lies; each of its headers repeats what the local
// header in front of the data says. zip64 puts sizes of 0xFFFFFFFF into an extra field with id 1.
// Spec: PKWARE's APPNOTE.TXT.
#include "readers/zip.h"

#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "source/budget.h"

namespace wheelscope {
namespace {

constexpr std::uint32_t local_magic = 0x04034b50, central_magic = 0x02014b50,
                        end_magic = 0x06054b50, end64_magic = 0x06064b50,
                        locator64_magic = 0x07064b50;
constexpr std::uint64_t local_size = 30, central_size = 46, end_size = 22, end64_size = 56,
                        locator64_size = 20;
constexpr std::uint64_t longest_comment = 0xFFFF;
constexpr std::uint64_t best_deflate_ratio = 1032;
constexpr int raw_deflate = -15;  // zlib's name for a stream without a header

struct Directory {
  std::uint64_t offset = 0, size = 0, count = 0;
  std::uint64_t shift = 0;  // bytes before the archive; all offsets count from its start
};

Result<std::uint64_t> find_end_record(Bytes file) {
  if (file.size() < end_size) return fail(0, "too short for a zip archive");
  const auto last = file.size() - end_size;
  const auto first = last > longest_comment ? last - longest_comment : 0;
  const auto tail = TRY(file.slice(first, file.size() - first, "end of the archive"));
  for (auto at = last + 1; at-- > first;) {
    if (tail.u32(at - first) == end_magic &&
        tail.u16(at - first + 20) + at + end_size <= file.size())
      return at;
  }
  return fail(last, "no end-of-central-directory record: not a zip archive, or truncated");
}

Result<Directory> find_directory(Bytes file) {
  const auto end_at = TRY(find_end_record(file));
  const auto end = TRY(file.slice(end_at, end_size, "end record"));
  Directory directory{.offset = end.u32(16), .size = end.u32(12), .count = end.u16(10)};
  auto directory_end = end_at;
  Bytes locator;
  if (end_at >= locator64_size)
    locator = TRY(file.slice(end_at - locator64_size, locator64_size, "zip64 locator"));
  if (locator.size() && locator.u32(0) == locator64_magic) {
    const auto end64_at = locator.u64(8);
    const auto end64 = TRY(file.slice(end64_at, end64_size, "zip64 end record"));
    if (end64.u32(0) != end64_magic)
      return fail(end64_at, "no zip64 end record where its locator points");
    directory = {.offset = end64.u64(48), .size = end64.u64(40), .count = end64.u64(32)};
    directory_end = end64_at;
  }
  if (directory.size > directory_end || directory.offset > directory_end - directory.size) {
    return fail(end_at, "central directory of " + std::to_string(directory.size) + " bytes at " +
                            std::to_string(directory.offset) +
                            " does not fit before its end record");
  }
  directory.shift = directory_end - directory.size - directory.offset;
  return directory;
}

// Replaces sizes and an offset that did not fit into 32 bits with those of the zip64 extra field.
Result<bool> apply_zip64(Bytes extra, ZipMember& member) {
  for (std::uint64_t at = 0; extra.size() - at >= 4;) {
    const auto id = extra.u16(at), length = extra.u16(at + 2);
    const auto field = TRY(extra.slice(at + 4, length, "extra field"));
    at += 4 + std::uint64_t{length};
    if (id != 1) continue;
    std::uint64_t next = 0;
    for (auto* value : {&member.size, &member.compressed_size, &member.header_offset}) {
      if (*value != 0xFFFFFFFF) continue;
      *value = TRY(field.slice(next, 8, "zip64 value")).u64(0);
      next += 8;
    }
    return true;
  }
  return false;
}

bool escapes(std::string_view name) {
  if (name.starts_with('/') || name.find('\\') != name.npos || name.find('\0') != name.npos)
    return true;
  if (name.size() > 1 && name[1] == ':') return true;
  for (std::size_t at = 0; at <= name.size();) {
    const auto end = std::min(name.find('/', at), name.size());
    if (name.substr(at, end - at) == "..") return true;
    at = end + 1;
  }
  return false;
}

class ZipReader {
 public:
  ZipReader(Bytes file, const ZipLimits& limits, LocalHeaders local_headers, ZipArchive& archive)
      : file_(file), limits_(limits), local_headers_(local_headers), archive_(archive) {}

  Result<void> read_directory(const Directory& directory) {
    if (directory.shift)
      problem("zip-prefix", {},
              {0, std::to_string(directory.shift) + " bytes precede the archive"});
    const auto headers =
        TRY(file_.slice(directory.offset + directory.shift, directory.size, "central directory"));
    std::uint64_t at = 0;
    while (at < headers.size() && archive_.members.size() < limits_.members) {
      auto next = read_header(headers, at, directory.shift);
      if (!next) {
        problem("zip-directory", {}, next.error());
        break;
      }
      at = *next;
    }
    if (archive_.members.size() != directory.count) {
      problem("zip-directory", {},
              {headers.origin(),
               "central directory has " + std::to_string(archive_.members.size()) +
                   " readable entries; its end record counts " + std::to_string(directory.count)});
    }
    return {};
  }

  void reject_overlaps() {
    std::vector<ZipMember*> by_place;
    for (auto& member : archive_.members) {
      if (member.readable) by_place.push_back(&member);
    }
    std::ranges::sort(by_place, {}, &ZipMember::header_offset);
    std::uint64_t end = 0;
    const ZipMember* previous = nullptr;
    for (auto* member : by_place) {
      if (member->header_offset < end) {
        member->readable = false;
        problem("zip-overlap", member->name,
                {member->header_offset, "shares bytes with " + previous->name});
      }
      const auto start = std::max(member->data_offset, member->header_offset + local_size);
      if (const auto own_end = start + member->compressed_size; own_end > end) {
        end = own_end;
        previous = member;
      }
    }
  }

 private:
  Result<std::uint64_t> read_header(Bytes headers, std::uint64_t at, std::uint64_t shift) {
    const auto header = TRY(headers.slice(at, central_size, "central header"));
    if (header.u32(0) != central_magic) return fail(header.origin(), "no central header here");
    const std::uint64_t name_length = header.u16(28), extra_length = header.u16(30),
                        comment_length = header.u16(32);
    const auto name = TRY(headers.slice(at + central_size, name_length, "member name"));
    const auto extra =
        TRY(headers.slice(at + central_size + name_length, extra_length, "extra fields"));
    ZipMember member{.name = std::string(name.text()),
                     .central_offset = header.origin(),
                     .header_offset = header.u32(42),
                     .compressed_size = header.u32(20),
                     .size = header.u32(24),
                     .crc32 = header.u32(16),
                     .method = header.u16(10)};
    const bool encrypted = header.u16(8) & 1;
    check(member, extra, encrypted, shift, header.origin());
    archive_.members.push_back(std::move(member));
    return at + central_size + name_length + extra_length + comment_length;
  }

  void check(ZipMember& member, Bytes extra, bool encrypted, std::uint64_t shift,
             std::uint64_t at) {
    auto reject = [&](const char* id, const Error& error) {
      member.readable = false;
      problem(id, member.name, error);
    };
    if (auto done = apply_zip64(extra, member); !done) return reject("zip-header", done.error());
    if (member.header_offset > file_.size())
      return reject("zip-header", {at, "local header lies past the end of the file"});
    member.header_offset += shift;
    if (!names_.insert(member.name).second) reject("zip-duplicate", {at, "the name occurs twice"});
    if (escapes(member.name))
      reject("zip-traversal", {at, "the name leaves the folder it is unpacked in"});
    if (encrypted) return reject("zip-encrypted", {at, "encrypted"});
    if (local_headers_ == LocalHeaders::checked) {
      if (auto found = locate_data(file_, member); !found)
        return reject("zip-header", found.error());
    } else if (member.header_offset > file_.size() ||
               member.compressed_size > file_.size() - member.header_offset) {
      return reject("zip-header", {at, "its data runs past the end of the file"});
    }
    if (member.method != 0 && member.method != 8) {
      return reject("zip-method", {at, "compression method " + std::to_string(member.method) +
                                           "; installers know 0 and 8"});
    }
    if (member.method == 0 && member.size != member.compressed_size) {
      return reject("zip-size", {at, "stored, yet its two sizes differ"});
    }
    if (member.size / best_deflate_ratio > member.compressed_size) {
      return reject("zip-bomb", {at, "claims " + std::to_string(member.size) + " bytes from " +
                                         std::to_string(member.compressed_size) +
                                         ", which deflate cannot give"});
    }
    total_size_ += std::min(member.size, limits_.member_size);
    if (member.size > limits_.member_size || total_size_ > limits_.total_size) {
      return reject("zip-bomb", {at, "claims " + std::to_string(member.size) +
                                         " bytes, more than this program unpacks"});
    }
  }

  void problem(const char* id, const std::string& member, const Error& error) {
    archive_.problems.add(id, member, error);
  }

  Bytes file_;
  const ZipLimits& limits_;
  LocalHeaders local_headers_;
  ZipArchive& archive_;
  std::unordered_set<std::string> names_;
  std::uint64_t total_size_ = 0;
};

}  // namespace

void ask_for(Bytes file, const ZipMember& member, std::uint64_t most) {
  constexpr std::uint64_t extra_fields = 128;
  const auto there = file.size() - std::min(member.header_offset, file.size());
  const auto all = member.compressed_size + member.name.size() + extra_fields;
  (void)file.slice(member.header_offset, std::min({most, all, there}), "a member");
}

Result<void> locate_data(Bytes file, ZipMember& member) {
  const auto local = TRY(file.slice(member.header_offset, local_size, "local header"));
  if (local.u32(0) != local_magic) return fail(member.header_offset, "no local header here");
  const auto name =
      TRY(file.slice(member.header_offset + local_size, local.u16(26), "name in local header"));
  if (name.text() != member.name) {
    return fail(name.origin(), "local header names '" + std::string(name.text()) + "' instead");
  }
  member.data_offset = member.header_offset + local_size + local.u16(26) + local.u16(28);
  TRY(file.window(member.data_offset, member.compressed_size, "compressed data"));
  auto differ = [&](const char* what) {
    return fail(member.header_offset,
                std::string("local header and central directory differ in the ") + what);
  };
  if (local.u16(8) != member.method) return differ("compression method");
  const bool sizes_follow = local.u16(6) & 8;  // in a data descriptor; the local header has zeros
  if (sizes_follow) return {};
  if (local.u32(14) != member.crc32) return differ("CRC");
  ZipMember said{.compressed_size = local.u32(18), .size = local.u32(22)};
  const auto extra = TRY(file.slice(member.header_offset + local_size + local.u16(26),
                                    local.u16(28), "extra fields of local header"));
  TRY_VOID(apply_zip64(extra, said));
  if (said.compressed_size != member.compressed_size || said.size != member.size)
    return differ("sizes");
  return {};
}

Result<ZipArchive> read_zip(Bytes file, const ZipLimits& limits, LocalHeaders local_headers) {
  const auto directory = TRY(find_directory(file));
  ZipArchive archive;
  ZipReader reader(file, limits, local_headers, archive);
  if (auto read = reader.read_directory(directory); !read) return std::unexpected(read.error());
  reader.reject_overlaps();
  return archive;
}

std::optional<Room> room_for(const ZipMember& member, std::uint64_t file_size) {
  if (member.method == 0 || member.size <= Allowance::contents_for(file_size)) return Room::memory;
  if (member.size <= Allowance::disk_for(file_size)) return Room::disk;
  return std::nullopt;
}

std::expected<Source, Problem> read_member(Bytes file, const ZipMember& member, Room room,
                                           std::vector<DeflateBlock>* blocks) {
  auto reject = [&](const char* id, std::string what) {
    return std::unexpected(Problem{id, member.name, std::move(what), member.data_offset});
  };
  const auto input = file.slice(member.data_offset, member.compressed_size, "compressed data");
  if (!input)
    return std::unexpected(
        Problem{"zip-header", member.name, input.error().what, input.error().offset});
  auto data = Source::view(Bytes(input->span()));
  if (member.method == 8) {
    data = room == Room::disk ? Source::spool(member.size) : Source::allocate(member.size);
    if (data.bytes().size() != member.size && room == Room::disk)
      return reject("limit", "no room for " + std::to_string(member.size) +
                                 " bytes in the folder for temporary files; it was not read");
    if (data.bytes().size() != member.size)
      return reject("zip-bomb", "no memory for " + std::to_string(member.size) + " bytes");
    thread_local const std::unique_ptr<libdeflate_decompressor,
                                       decltype(&libdeflate_free_decompressor)>
        inflater(libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
    auto output = data.writable();
    std::size_t used = 0;
    std::byte nothing{};
    auto outcome = LIBDEFLATE_SUCCESS;
    if (auto found = blocks ? inflate_blocks(input->span(), output) : std::nullopt)
      *blocks = std::move(*found);
    else  // also if that failed: libdeflate tells why
      outcome = libdeflate_deflate_decompress_ex(
          inflater.get(), input->span().data(), input->size(),
          output.empty() ? &nothing : output.data(), output.size(), &used, nullptr);
    switch (outcome) {
      case LIBDEFLATE_SUCCESS:
        break;
      case LIBDEFLATE_SHORT_OUTPUT:
        return reject("zip-size", "inflates to less than it claims");
      case LIBDEFLATE_INSUFFICIENT_SPACE:
        return reject("zip-size", "inflates to more than it claims");
      default:
        return reject("zip-data", "the deflated data is damaged");
    }
  }
  const auto contents = data.bytes().span();
  if (libdeflate_crc32(0, contents.data(), contents.size()) != member.crc32) {
    return reject("zip-crc", "the CRC of the contents is not the recorded one");
  }
  return data;
}

std::optional<std::vector<DeflateBlock>> inflate_blocks(std::span<const std::byte> stream,
                                                        std::span<std::byte> room) {
  constexpr std::size_t most_at_once = 1 << 30;  // zlib counts in 32 bits
  constexpr int block_has_ended = 128, unused_bits = 7;
  z_stream zlib{};
  if (inflateInit2(&zlib, raw_deflate) != Z_OK) return std::nullopt;
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&zlib, inflateEnd);
  std::byte nothing{};
  const auto* const in = reinterpret_cast<const unsigned char*>(stream.data());
  auto* const out = reinterpret_cast<unsigned char*>(room.empty() ? &nothing : room.data());
  zlib.next_in = const_cast<unsigned char*>(in);
  zlib.next_out = out;
  auto bit = [&](std::uint64_t at) { return in[at / 8] >> at % 8 & 1; };
  std::vector<DeflateBlock> blocks;
  const auto most = room.size() / 1024 + 16;
  std::size_t read = 0, written = 0;
  for (std::uint64_t first_bit = 0, at = 0;;) {
    zlib.avail_in = static_cast<unsigned>(std::min(stream.size() - read, most_at_once));
    zlib.avail_out = static_cast<unsigned>(std::min(room.size() - written, most_at_once));
    const int code = inflate(&zlib, Z_BLOCK);
    read = static_cast<std::size_t>(zlib.next_in - in);
    written = static_cast<std::size_t>(zlib.next_out - out);
    if (code == Z_STREAM_END && written == room.size()) return blocks;
    if (code != Z_OK) return std::nullopt;
    if (!(zlib.data_type & block_has_ended)) continue;
    const auto end_bit = 8 * read - static_cast<unsigned>(zlib.data_type & unused_bits);
    const bool stored = !bit(first_bit + 1) && !bit(first_bit + 2);
    if (blocks.size() < most) blocks.push_back({first_bit, end_bit, at, written - at, stored});
    first_bit = end_bit;
    at = written;
  }
}

MemberStart::MemberStart(Bytes file, const ZipMember& member)
    : file_(file), member_(member), stream_(std::make_unique<z_stream_s>()) {
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
