// Removes ranges of zeros from a shared library's file without changing any address.
#pragma once

#include <elf.h>

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "source/bytes.h"

namespace wheelscope {

// A part of a file.
struct FileRange {
  std::uint64_t at = 0, size = 0;
  std::uint64_t end() const { return at + size; }
  bool operator==(const FileRange&) const = default;
};

// The three kinds of headers of a 64-bit little-endian file.
struct ElfTables {
  Elf64_Ehdr header{};
  std::vector<Elf64_Phdr> segments;
  std::vector<Elf64_Shdr> sections;
};
std::optional<ElfTables> read_tables(Bytes file);

// Why a file keeps its zeros.
//   no_room       no range of zeros is worth a mapping of its own
//   not_shared    an executable or an object file: only the loader of shared libraries is known to
//                 accept program headers at the end of a file
//   unusual       32 bits, big-endian, or tables that do not fit together
enum class KeepsZeros { no_room, not_shared, unusual };

// The layout of the new file.
struct HoleyLayout {
  std::vector<FileRange> holes;   // in the old file: whole pages of zeros, in order
  std::uint64_t page = 0;         // offsets and addresses are congruent modulo this
  std::uint64_t copied = 0;       // bytes of the old file to copy: up to its end, or to the section
                                  // headers if they come last
  std::uint64_t segments_at = 0;  // in the new file: the program headers
  std::uint64_t sections_at = 0;  // ... and the section headers
  std::uint64_t segments_address = 0;
  std::uint64_t segments = 0, sections = 0;  // how many
  std::uint64_t size = 0;                    // of the new file
};

// Plans the holes. `zeros`: ranges of zeros inside sections of device code, in order.
std::expected<HoleyLayout, KeepsZeros> plan_holes(Bytes file, const std::vector<FileRange>& zeros);

// moved: where a byte of the old file is in the new one. between: the parts of a range outside the
// holes.
std::uint64_t moved(std::uint64_t offset, const std::vector<FileRange>& holes);
std::vector<FileRange> between(const FileRange& range, const std::vector<FileRange>& holes);

// The new parts: the header at the start, and the two tables at the end. In between are the bytes
// of the old file up to layout.copied, without the holes, and zeros up to the tables.
struct HoleyParts {
  std::string header, tables;
};
HoleyParts new_parts(Bytes file, const HoleyLayout& layout);

}  // namespace wheelscope
