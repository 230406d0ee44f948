// Writes a zip archive from the members of another one: unchanged members keep their compressed
// bytes, and all keep their order, times and modes. Equal input gives equal bytes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "readers/zip.h"

namespace wheelscope {

class ZipWriter {
 public:
  // Into a file beside `path`, which gets that name when all is well; until then nothing is there.
  static Result<ZipWriter> create(const std::string& path);

  // A member of `archive` as it is.
  Result<void> copy(Bytes archive, const ZipMember& member);

  // The same member with other contents.
  Result<void> replace(Bytes archive, const ZipMember& member, std::span<const std::byte> contents);

  // A new member with the time and mode of another one.
  Result<void> add(const std::string& name, Bytes archive, const ZipMember& like,
                   std::string_view contents);

  // Writes the directory, and gives the file its name.
  Result<void> finish();

  std::uint64_t size() const;

  ZipWriter(ZipWriter&&) noexcept;
  ZipWriter& operator=(ZipWriter&&) = delete;
  ~ZipWriter();

 private:
  struct File;
  struct Header;
  explicit ZipWriter(std::unique_ptr<File> file);
  Result<void> write(Header header, std::span<const std::byte> data);

  std::unique_ptr<File> file_;
};

// The deflated contents; nothing where they would not be smaller.
std::optional<std::string> deflated(std::span<const std::byte> contents);

}  // namespace wheelscope
