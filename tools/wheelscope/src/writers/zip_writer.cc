// Writes local headers, data and the central directory; the format is explained in readers/zip.cc.
#include "writers/zip_writer.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <concepts>
#include <cstring>
#include <filesystem>
#include <limits>

namespace wheelscope {
namespace {

constexpr std::uint64_t local_header_size = 30, central_header_size = 46;
constexpr std::uint32_t too_large = 0xFFFFFFFF;  // the number is in a zip64 field
constexpr std::uint16_t zip64_id = 1, needs_zip64 = 45, sizes_follow_flag = 8;

// A sequence of little-endian numbers and texts.
struct Record {
  std::string text;
  template <std::integral T>
  Record& put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      text += static_cast<char>(static_cast<std::uint64_t>(value) >> 8 * i & 0xFF);
    return *this;
  }
  Record& put(std::string_view part) {
    text += part;
    return *this;
  }
};

// Returns the extra fields except zip64's, which is written anew.
Result<std::string> other_fields(Bytes extra) {
  std::string kept;
  for (std::uint64_t at = 0; extra.size() - at >= 4;) {
    const auto length = 4 + std::uint64_t{extra.u16(at + 2)};
    const auto field = TRY(extra.slice(at, length, "extra field"));
    if (extra.u16(at) != zip64_id) kept += field.text();
    at += length;
  }
  return kept;
}

std::uint32_t fitting(std::uint64_t number) {
  return number < too_large ? static_cast<std::uint32_t>(number) : too_large;
}

}  // namespace

struct ZipWriter::File {
  std::string path, unfinished;
  int descriptor = -1;
  std::uint64_t size = 0;
  std::string directory;
  std::uint64_t members = 0;

  ~File() {
    if (descriptor >= 0) close(descriptor);
    if (!unfinished.empty()) unlink(unfinished.c_str());
  }

  Result<void> append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto written = ::write(descriptor, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return fail(path, std::strerror(errno));
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      size += static_cast<std::uint64_t>(written);
    }
    return {};
  }
  Result<void> append(std::string_view text) { return append(std::as_bytes(std::span(text))); }

  // Overwrites what was written with a text of the same length.
  Result<void> overwrite(std::uint64_t at, std::string_view text) {
    const auto written = pwrite(descriptor, text.data(), text.size(), static_cast<off_t>(at));
    if (written != static_cast<ssize_t>(text.size())) return fail(path, std::strerror(errno));
    return {};
  }
};

// The common part of a member's two headers, and what they take from the original's.
struct ZipWriter::Header {
  std::string name, local_extra, central_extra, comment;
  std::uint16_t made_by = 0, needs = 20, flags = 0, method = 0, time = 0, date = 0,
                internal_attributes = 0;
  std::uint32_t external_attributes = 0, crc32 = 0;
  std::uint64_t compressed_size = 0, size = 0;
  bool large = false;  // the local header has room for sizes of 64 bits

  static Result<Header> of(Bytes archive, const ZipMember& member) {
    const auto central =
        TRY(archive.slice(member.central_offset, central_header_size, "central header"));
    const auto local = TRY(archive.slice(member.header_offset, local_header_size, "local header"));
    const auto after_name = member.central_offset + central_header_size + central.u16(28);
    const auto extra = TRY(archive.slice(after_name, central.u16(30), "extra fields"));
    const auto comment =
        TRY(archive.slice(after_name + central.u16(30), central.u16(32), "comment"));
    const auto local_extra = TRY(archive.slice(
        member.header_offset + local_header_size + local.u16(26), local.u16(28), "extra fields"));
    return Header{.name = member.name,
                  .local_extra = TRY(other_fields(local_extra)),
                  .central_extra = TRY(other_fields(extra)),
                  .comment = std::string(comment.text()),
                  .made_by = central.u16(4),
                  .needs = central.u16(6),
                  .flags = static_cast<std::uint16_t>(central.u16(8) & ~sizes_follow_flag),
                  .method = member.method,
                  .time = central.u16(12),
                  .date = central.u16(14),
                  .internal_attributes = central.u16(36),
                  .external_attributes = central.u32(38),
                  .crc32 = member.crc32,
                  .compressed_size = member.compressed_size,
                  .size = member.size,
                  .large = std::max(member.size, member.compressed_size) >= too_large};
  }

  std::string local() const {
    Record extra;
    if (large) extra.put(zip64_id).put(std::uint16_t{16}).put(size).put(compressed_size);
    extra.put(local_extra);
    Record record;
    record.put(std::uint32_t{0x04034b50});
    put_common(record, large, large ? too_large : fitting(compressed_size),
               large ? too_large : fitting(size), extra.text);
    return record.put(name).put(extra.text).text;
  }

  std::string central(std::uint64_t offset) const {
    Record numbers;
    for (const auto number : {size, compressed_size, offset}) {
      if (number >= too_large) numbers.put(number);
    }
    Record extra;
    if (!numbers.text.empty())
      extra.put(zip64_id).put(static_cast<std::uint16_t>(numbers.text.size())).put(numbers.text);
    extra.put(central_extra);
    Record record;
    record.put(std::uint32_t{0x02014b50}).put(made_by);
    put_common(record, !numbers.text.empty(), fitting(compressed_size), fitting(size), extra.text);
    record.put(static_cast<std::uint16_t>(comment.size()))
        .put(std::uint16_t{0})  // number of the disk where it starts
        .put(internal_attributes)
        .put(external_attributes)
        .put(fitting(offset));
    return record.put(name).put(extra.text).put(comment).text;
  }

 private:
  void put_common(Record& record, bool zip64, std::uint32_t small_compressed,
                  std::uint32_t small_size, const std::string& extra) const {
    record.put(zip64 ? std::max(needs, needs_zip64) : needs)
        .put(flags)
        .put(method)
        .put(time)
        .put(date)
        .put(crc32)
        .put(small_compressed)
        .put(small_size)
        .put(static_cast<std::uint16_t>(name.size()))
        .put(static_cast<std::uint16_t>(extra.size()));
  }
};

ZipWriter::ZipWriter(std::unique_ptr<File> file) : file_(std::move(file)) {}
ZipWriter::ZipWriter(ZipWriter&&) noexcept = default;
ZipWriter::~ZipWriter() = default;

std::uint64_t ZipWriter::size() const {
  return file_->size;
}

Result<ZipWriter> ZipWriter::create(const std::string& path) {
  auto file = std::make_unique<File>();
  file->path = path;
  std::error_code error;
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  auto name = path + ".XXXXXX";
  file->descriptor = mkostemp(name.data(), O_CLOEXEC);
  if (file->descriptor < 0) return fail(path, std::strerror(errno));
  file->unfinished = name;
  const auto mask = umask(0);
  umask(mask);
  fchmod(file->descriptor, 0666 & ~mask);
  return ZipWriter(std::move(file));
}

void ZipWriter::list(const Header& header, std::uint64_t at) {
  file_->directory += header.central(at);
  ++file_->members;
}

Result<void> ZipWriter::copy(Bytes archive, const ZipMember& member) {
  const auto data =
      TRY(archive.slice(member.data_offset, member.compressed_size, "compressed data"));
  const auto header = TRY(Header::of(archive, member));
  list(header, file_->size);
  TRY_VOID(file_->append(header.local()));
  return file_->append(data.span());
}

Result<void> ZipWriter::replace(Bytes archive, const ZipMember& member, const Pieces& contents,
                                const DeflatedOriginal& original) {
  auto header = TRY(Header::of(archive, member));
  const auto at = file_->size;
  header.crc32 = 0;
  for (const auto& piece : contents.list())
    header.crc32 = libdeflate_crc32(header.crc32, piece.data(), piece.size());
  header.size = contents.size();
  header.large = libdeflate_deflate_compress_bound(nullptr, contents.size()) >= too_large;
  TRY_VOID(file_->append(header.local()));
  const auto start = file_->size;
  auto append = [&](std::span<const std::byte> data) { return file_->append(data); };
  if (header.method == 0) {
    for (const auto& piece : contents.list()) TRY_VOID(append(piece));
  } else {
    TRY_VOID(write_deflated(contents, original, append));
  }
  header.compressed_size = file_->size - start;  // known only now
  TRY_VOID(file_->overwrite(at, header.local()));
  list(header, at);
  return {};
}

Result<void> ZipWriter::add(const std::string& name, Bytes archive, const ZipMember& like,
                            std::string_view contents) {
  auto model = like;
  model.name = name;
  return replace(archive, model, std::as_bytes(std::span(contents)));
}

Result<void> ZipWriter::finish() {
  const auto offset = file_->size;
  const auto size = file_->directory.size();
  TRY_VOID(file_->append(file_->directory));
  constexpr std::uint64_t most_members = 0xFFFF;
  const bool large = offset >= too_large || size >= too_large || file_->members >= most_members;
  Record end;
  if (large) {
    const auto end64 = file_->size;
    end.put(std::uint32_t{0x06064b50}).put(std::uint64_t{44});
    end.put(needs_zip64).put(needs_zip64).put(std::uint32_t{0}).put(std::uint32_t{0});
    end.put(file_->members).put(file_->members).put(std::uint64_t{size}).put(offset);
    end.put(std::uint32_t{0x07064b50}).put(std::uint32_t{0}).put(end64).put(std::uint32_t{1});
  }
  const auto members = static_cast<std::uint16_t>(std::min(file_->members, most_members));
  end.put(std::uint32_t{0x06054b50}).put(std::uint16_t{0}).put(std::uint16_t{0});
  end.put(members).put(members).put(fitting(size)).put(fitting(offset)).put(std::uint16_t{0});
  TRY_VOID(file_->append(end.text));
  if (close(std::exchange(file_->descriptor, -1)) != 0 ||
      rename(file_->unfinished.c_str(), file_->path.c_str()) != 0)
    return fail(file_->path, std::strerror(errno));
  file_->unfinished.clear();
  return {};
}

}  // namespace wheelscope
