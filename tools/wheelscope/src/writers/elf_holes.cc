// Cuts zeros out of shared libraries.
//
// The loader maps a file by its PT_LOAD segments: p_filesz bytes from the file, then zeros up to
// p_memsz. A segment with a range of zeros inside is therefore split in two: the first one ends
// where the zeros begin, and its p_memsz reaches to the second one. All that follows in the file
// moves down by whole pages, since the loader wants offsets and addresses to be congruent.
//
//   before   | code | kept | zeros ........ | kept | data |
//   after    | code | kept | kept | data | program headers | section headers |
//                          ^ p_filesz < p_memsz
//
// More segments need a longer table of program headers, for which there is no room at the start of
// a file. It goes to the end, in a segment of its own behind all others, as with patchelf. PT_PHDR
// says so: without it glibc takes the first segment whose last page has the table's offset, which
// may be that of .bss, where it finds zeros, and no exception finds its handler. The segment has
// the section headers too, so that there is room for patchelf to lengthen the table. The section
// that lost bytes is shortened accordingly.
#include "writers/elf_holes.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace wheelscope {
namespace {

// A process has room for 65,530 mappings, and each hole costs two.
constexpr std::size_t most_holes = 500;
constexpr std::uint64_t smallest_hole = 32 << 10;
constexpr std::uint64_t header_bytes = sizeof(Elf64_Ehdr), segment_bytes = sizeof(Elf64_Phdr),
                        section_bytes = sizeof(Elf64_Shdr), smallest_page = 4096;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

template <class T>
bool copy_table(Bytes file, std::uint64_t at, std::uint64_t count, std::vector<T>& table) {
  const auto bytes = file.slice(at, count * sizeof(T), "table");
  if (!bytes) return false;
  table.resize(count);
  if (count) std::memcpy(table.data(), bytes->span().data(), count * sizeof(T));
  return true;
}

bool overlap(std::uint64_t at, std::uint64_t size, const FileRange& range) {
  return at < range.end() && range.at < at + size;
}
bool contains(std::uint64_t at, std::uint64_t size, const FileRange& range) {
  return at <= range.at && range.end() <= at + size;
}

// True if segments and sections lie in the file, and segments are sorted by address and do not
// overlap, as the loader requires.
bool in_order(const ElfTables& tables, std::uint64_t file_size) {
  for (const auto& one : tables.sections) {
    if (one.sh_type != SHT_NOBITS && one.sh_type != SHT_NULL &&
        (one.sh_offset > file_size || one.sh_size > file_size - one.sh_offset))
      return false;
  }
  std::uint64_t end = 0;
  for (const auto& one : tables.segments) {
    if (one.p_offset > file_size || one.p_filesz > file_size - one.p_offset) return false;
    if (one.p_type != PT_LOAD) continue;
    if (one.p_filesz > one.p_memsz || one.p_vaddr < end || one.p_memsz > ~one.p_vaddr) return false;
    if (one.p_align > 1 && (one.p_vaddr - one.p_offset) % one.p_align != 0) return false;
    end = one.p_vaddr + one.p_memsz;
  }
  constexpr std::uint64_t highest = std::uint64_t{1} << 46;  // limit of a process's addresses
  return end < highest;
}

// Returns the page size to use; 0 if the alignments make no sense.
std::uint64_t page_of(const ElfTables& tables) {
  std::uint64_t page = smallest_page, section = 1;
  for (const auto& one : tables.sections) {
    if (one.sh_flags & SHF_ALLOC) section = std::max<std::uint64_t>(section, one.sh_addralign);
  }
  for (const auto& one : tables.segments) {
    if (one.p_type == PT_LOAD) page = std::max<std::uint64_t>(page, one.p_align);
  }
  // Old linkers aligned to 2 MiB for x86-64, where pages have 4 KiB.
  if (tables.header.e_machine == EM_X86_64 && section <= smallest_page) page = smallest_page;
  constexpr std::uint64_t largest = 1 << 24;
  return page > largest || (page & (page - 1)) != 0 ? 0 : page;
}

// Returns the holes that lie inside one segment and one section; the largest ones, if there are
// many.
std::vector<FileRange> find_holes(const ElfTables& tables, const std::vector<FileRange>& zeros,
                                  std::uint64_t page) {
  std::vector<FileRange> holes;
  for (const auto& range : zeros) {
    const auto start = round_up(range.at, page), end = range.end() / page * page;
    if (start + smallest_hole <= end) holes.push_back({start, end - start});
  }
  if (holes.size() > most_holes) {
    std::ranges::stable_sort(holes, std::greater{}, &FileRange::size);
    holes.resize(most_holes);
    std::ranges::sort(holes, {}, &FileRange::at);
  }
  auto shared = [&](const FileRange& hole) {
    std::size_t loads = 0, sections = 0;
    for (const auto& one : tables.segments) {
      if (!overlap(one.p_offset, one.p_filesz, hole)) continue;
      // Offsets must be congruent to addresses modulo whole pages, not only modulo p_align.
      if (one.p_type != PT_LOAD || !contains(one.p_offset, one.p_filesz, hole) ||
          (one.p_vaddr - one.p_offset) % page != 0)
        return true;
      ++loads;
    }
    for (const auto& one : tables.sections) {
      if (one.sh_type == SHT_NOBITS || !overlap(one.sh_offset, one.sh_size, hole)) continue;
      if (!contains(one.sh_offset, one.sh_size, hole)) return true;
      ++sections;
    }
    return loads != 1 || sections != 1;
  };
  std::erase_if(holes, shared);
  return holes;
}

// True if the program headers or the section headers lie in a hole.
bool hides_tables(const ElfTables& tables, const std::vector<FileRange>& holes) {
  const auto& own = tables.header;
  return std::ranges::any_of(holes, [&](const FileRange& hole) {
    return overlap(0, header_bytes, hole) ||
           overlap(own.e_phoff, own.e_phnum * segment_bytes, hole) ||
           overlap(own.e_shoff, own.e_shnum * section_bytes, hole);
  });
}

// True if the section headers end the file and belong to nothing else: then they need not stay.
bool sections_are_last(const ElfTables& tables, std::uint64_t file_size) {
  const auto start = tables.header.e_shoff;
  return start + tables.header.e_shnum * section_bytes == file_size &&
         std::ranges::all_of(
             tables.segments,
             [&](const Elf64_Phdr& one) { return one.p_offset + one.p_filesz <= start; }) &&
         std::ranges::all_of(tables.sections, [&](const Elf64_Shdr& one) {
           return one.sh_type == SHT_NOBITS || one.sh_type == SHT_NULL ||
                  one.sh_offset + one.sh_size <= start;
         });
}

std::vector<Elf64_Phdr> split_segments(const ElfTables& tables, const HoleyLayout& layout) {
  const Elf64_Phdr own{.p_type = PT_LOAD,
                       .p_flags = PF_R,
                       .p_offset = layout.segments_at,
                       .p_vaddr = layout.segments_address,
                       .p_paddr = layout.segments_address,
                       .p_filesz = layout.size - layout.segments_at,
                       .p_memsz = layout.size - layout.segments_at,
                       .p_align = layout.page};
  const auto loads = std::ranges::count(tables.segments, Elf64_Word{PT_LOAD}, &Elf64_Phdr::p_type);
  std::ptrdiff_t seen = 0;
  std::vector<Elf64_Phdr> segments{own};
  segments.front().p_type = PT_PHDR;
  segments.front().p_filesz = segments.front().p_memsz = layout.segments * segment_bytes;
  segments.front().p_align = alignof(Elf64_Phdr);
  for (const auto& one : tables.segments) {
    if (one.p_type == PT_PHDR) continue;
    if (one.p_type != PT_LOAD) {
      segments.push_back(one);
      segments.back().p_offset = moved(one.p_offset, layout.holes);
      continue;
    }
    const auto parts = between({one.p_offset, one.p_filesz}, layout.holes);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto part = one;
      const auto into = parts[i].at - one.p_offset;
      part.p_offset = moved(parts[i].at, layout.holes);
      part.p_vaddr += into;
      part.p_paddr += into;
      part.p_filesz = parts[i].size;
      part.p_memsz = i + 1 < parts.size() ? parts[i + 1].at - parts[i].at : one.p_memsz - into;
      part.p_align = std::min<std::uint64_t>(one.p_align, layout.page);
      segments.push_back(part);
    }
    if (++seen == loads) segments.push_back(own);
  }
  return segments;
}

// Returns the section headers for the new file. The rest of a section is again one range of the
// file, from which tools that list device code read it. Behind its first hole, its bytes are not at
// the addresses that its header tells.
std::vector<Elf64_Shdr> shortened_sections(const ElfTables& tables, const HoleyLayout& layout) {
  auto sections = tables.sections;
  for (auto& one : sections) {
    const auto end = one.sh_offset + one.sh_size;
    const auto start = std::exchange(one.sh_offset, moved(one.sh_offset, layout.holes));
    if (one.sh_type != SHT_NOBITS && one.sh_type != SHT_NULL && end >= start)
      one.sh_size = moved(end, layout.holes) - one.sh_offset;
  }
  return sections;
}

}  // namespace

std::optional<ElfTables> read_tables(Bytes file) {
  ElfTables tables;
  const auto header = file.slice(0, header_bytes, "ELF header");
  if (!header) return std::nullopt;
  std::memcpy(&tables.header, header->span().data(), header_bytes);
  const auto& own = tables.header;
  if (own.e_ident[EI_CLASS] != ELFCLASS64 || own.e_ident[EI_DATA] != ELFDATA2LSB ||
      own.e_phentsize != segment_bytes || own.e_shentsize != section_bytes || !own.e_shoff ||
      !own.e_shnum || own.e_shnum >= SHN_LORESERVE || own.e_phnum == PN_XNUM)
    return std::nullopt;
  if (!copy_table(file, own.e_phoff, own.e_phnum, tables.segments) ||
      !copy_table(file, own.e_shoff, own.e_shnum, tables.sections))
    return std::nullopt;
  return tables;
}

std::uint64_t moved(std::uint64_t offset, const std::vector<FileRange>& holes) {
  std::uint64_t gone = 0;
  for (const auto& hole : holes) {
    if (hole.at < offset) gone += std::min(hole.size, offset - hole.at);
  }
  return offset - gone;
}

std::vector<FileRange> between(const FileRange& range, const std::vector<FileRange>& holes) {
  std::vector<FileRange> parts;
  auto start = range.at;
  for (const auto& hole : holes) {
    if (!overlap(range.at, range.size, hole)) continue;
    parts.push_back({start, hole.at - start});
    start = hole.end();
  }
  parts.push_back({start, range.end() - start});
  return parts;
}

std::expected<HoleyLayout, KeepsZeros> plan_holes(Bytes file, const std::vector<FileRange>& zeros) {
  const auto tables = read_tables(file);
  if (!tables) return std::unexpected(KeepsZeros::unusual);
  const auto& own = tables->header;
  const bool program = std::ranges::any_of(
      tables->segments, [](const Elf64_Phdr& one) { return one.p_type == PT_INTERP; });
  if (own.e_type != ET_DYN || program) return std::unexpected(KeepsZeros::not_shared);
  HoleyLayout layout{.page = page_of(*tables)};
  if (!layout.page || !in_order(*tables, file.size())) return std::unexpected(KeepsZeros::unusual);
  layout.holes = find_holes(*tables, zeros, layout.page);
  if (layout.holes.empty()) return std::unexpected(KeepsZeros::no_room);
  if (hides_tables(*tables, layout.holes)) return std::unexpected(KeepsZeros::unusual);
  layout.copied = sections_are_last(*tables, file.size()) ? own.e_shoff : file.size();
  const auto old = std::ranges::count(tables->segments, Elf64_Word{PT_PHDR}, &Elf64_Phdr::p_type);
  layout.segments =
      tables->segments.size() - static_cast<std::size_t>(old) + layout.holes.size() + 2;
  layout.sections = tables->sections.size();
  if (layout.segments >= PN_XNUM) return std::unexpected(KeepsZeros::unusual);
  layout.segments_at = round_up(moved(layout.copied, layout.holes), 8);
  layout.sections_at = layout.segments_at + layout.segments * segment_bytes;
  layout.size = layout.sections_at + layout.sections * section_bytes;
  std::uint64_t end = 0;
  for (const auto& one : tables->segments) {
    if (one.p_type == PT_LOAD) end = one.p_vaddr + one.p_memsz;
  }
  layout.segments_address = round_up(end, layout.page) + layout.segments_at % layout.page;
  if (layout.size >= file.size()) return std::unexpected(KeepsZeros::no_room);
  return layout;
}

HoleyParts new_parts(Bytes file, const HoleyLayout& layout) {
  const auto tables = read_tables(file);
  if (!tables) std::abort();  // plan_holes() has read them
  const auto segments = split_segments(*tables, layout);
  const auto sections = shortened_sections(*tables, layout);
  if (segments.size() != layout.segments || sections.size() != layout.sections) std::abort();
  auto header = tables->header;
  header.e_phoff = layout.segments_at;
  header.e_phnum = static_cast<Elf64_Half>(layout.segments);
  header.e_shoff = layout.sections_at;
  header.e_shnum = static_cast<Elf64_Half>(layout.sections);
  auto text = [](const auto* first, std::uint64_t size) {
    return std::string(reinterpret_cast<const char*>(first), size);
  };
  return {text(&header, header_bytes), text(segments.data(), segments.size() * segment_bytes) +
                                           text(sections.data(), sections.size() * section_bytes)};
}

}  // namespace wheelscope
