// Writes a zip archive from the members of another one. Unchanged members keep their compressed
// bytes, and all keep their order, times and modes. Equal input gives equal bytes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "readers/zip.h"

namespace wheelscope {

// Deflated contents from which others are made: their unchanged parts keep their compressed bytes,
// as compressing takes ten times as long as everything else that thinning a wheel needs.
struct DeflatedOriginal {
  std::span<const std::byte> stream, contents;
  std::vector<DeflateBlock> blocks;
};

using Sink = std::function<Result<void>(std::span<const std::byte>)>;

// Writes the stream to `sink` piece by piece. Pieces that are views of the original's contents keep
// their blocks.
Result<void> write_deflated(const Pieces& contents, const DeflatedOriginal& original,
                            const Sink& sink);

class ZipWriter {
 public:
  // Writes to a file beside `path`, which is renamed to `path` only on success.
  static Result<ZipWriter> create(const std::string& path);

  // Copies a member of `archive` as it is.
  Result<void> copy(Bytes archive, const ZipMember& member);

  // Writes the same member with other contents, which may be made from `original`.
  Result<void> replace(Bytes archive, const ZipMember& member, const Pieces& contents,
                       const DeflatedOriginal& original = {});

  // Adds a new member with the time and mode of another one.
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
  void list(const Header& header, std::uint64_t at);

  std::unique_ptr<File> file_;
};

}  // namespace wheelscope
