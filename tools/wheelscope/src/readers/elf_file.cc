// Reads ELF files of either width and byte order, from the tables that the loader uses.
//
// A file has two indexes of the same bytes: program headers (segments, for the loader; always right
// in a file that runs) and section headers (for linkers and debuggers; may be stripped or false).
// Everything about loading comes from the dynamic segment, whose addresses are turned into file
// offsets through the PT_LOAD segments; only names of sections, and the symbols of object files,
// come from section headers. Spec: System V ABI, and Linux' LSB for versions.
#include "readers/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "text/text.h"

namespace wheelscope {
namespace {

constexpr std::size_t most_problems = 20;  // one defect can spoil every entry of a table

// Machines that older headers lack.
constexpr int em_intelgt = 205, em_loongarch = 258;

struct Segment {
  std::uint64_t type, offset, address, file_size, flags;
};

struct Dynamic {
  std::map<std::uint64_t, std::uint64_t> values;  // tag -> last value
  std::vector<std::uint64_t> needed;
  bool has(std::uint64_t tag) const { return values.contains(tag); }
  std::uint64_t operator[](std::uint64_t tag) const {
    auto found = values.find(tag);
    return found == values.end() ? 0 : found->second;
  }
};

class ElfReader {
 public:
  ElfReader(Bytes file, Loan& memory, Elf& elf) : file_(file), memory_(memory), elf_(elf) {}

  Result<void> read() {
    const auto ident = TRY(file_.slice(0, EI_NIDENT, "ELF identification"));
    elf_.wide = ident.u8(EI_CLASS) == ELFCLASS64;
    elf_.big_endian = ident.u8(EI_DATA) == ELFDATA2MSB;
    elf_.abi_version = ident.u8(EI_ABIVERSION);
    if (ident.u8(EI_CLASS) != ELFCLASS32 && !elf_.wide)
      return fail(EI_CLASS, "ELF class is neither 32 nor 64 bits");
    if (ident.u8(EI_DATA) != ELFDATA2LSB && !elf_.big_endian)
      return fail(EI_DATA, "ELF byte order is unknown");
    if (elf_.big_endian) file_ = file_.in_big_endian();
    const auto header = TRY(file_.slice(0, elf_.wide ? 64 : 52, "ELF header"));
    elf_.type = header.u16(16);
    elf_.machine = header.u16(18);
    elf_.flags = header.u32(elf_.wide ? 48 : 36);
    attempt([&] { return read_sections(header); });
    // Linkers need section headers, loaders do not.
    if (elf_.type != ET_REL) std::swap(elf_.section_problems, elf_.problems);
    attempt([&] { return read_segments(header); });
    attempt([&] { return read_dynamic(); });
    return {};
  }

 private:
  void attempt(const std::function<Result<void>()>& part) {
    if (auto done = part(); !done) problem(done.error());
  }
  void problem(Error error) {
    if (elf_.problems.size() < most_problems) elf_.problems.push_back(std::move(error));
  }

  // Takes memory for things whose number the file decides, before they are kept.
  Result<void> afford(std::uint64_t bytes, std::uint64_t at, std::string_view what) {
    if (memory_.take(bytes)) return {};
    return fail(at,
                std::string(what) + " that take more memory than a file of this size justifies");
  }

  // A 32-bit or 64-bit field; the two offsets are those of the two layouts.
  std::uint64_t word(Bytes record, std::uint64_t at32, std::uint64_t at64) const {
    return elf_.wide ? record.u64(at64) : record.u32(at32);
  }

  Result<void> read_segments(Bytes header) {
    const auto offset = word(header, 28, 32);
    const std::uint64_t size = header.u16(elf_.wide ? 54 : 42),
                        count = header.u16(elf_.wide ? 56 : 44);
    const std::uint64_t expected = elf_.wide ? 56 : 32;
    if (count == 0) return {};
    if (size != expected)
      return fail(elf_.wide ? 54 : 42, "program header size " + std::to_string(size));
    const auto table = TRY(file_.slice(offset, size * count, "program headers"));
    bool stack_declared = false, relro = false;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto entry = TRY(table.slice(i * size, size, "program header"));
      const Segment segment{.type = entry.u32(0),
                            .offset = word(entry, 4, 8),
                            .address = word(entry, 8, 16),
                            .file_size = word(entry, 16, 32),
                            .flags = entry.u32(elf_.wide ? 4 : 24)};
      TRY_VOID(afford(sizeof segment, entry.origin(), "segments"));
      segments_.push_back(segment);
      if (segment.type == PT_GNU_STACK) {
        stack_declared = true;
        elf_.hardening.nx = !(segment.flags & PF_X);
      }
      relro |= segment.type == PT_GNU_RELRO;
      elf_.cut_off |= segment.type == PT_LOAD && left_from(segment.offset) < segment.file_size;
      if (segment.type == PT_GNU_PROPERTY || segment.type == PT_NOTE) read_isa_level(segment);
      if (segment.type == PT_INTERP) {
        if (auto bytes = file_.slice(segment.offset, segment.file_size, "interpreter");
            bytes && bytes->size()) {
          elf_.interpreter = bytes->text().substr(0, bytes->text().find('\0'));
        }
      }
    }
    if (!stack_declared)
      elf_.hardening.nx =
          elf_.machine != EM_386 && elf_.machine != EM_X86_64;  // the kernel's default
    using Relro = ElfHardening::Relro;
    elf_.hardening.relro = relro ? Relro::partial : Relro::none;
    return {};
  }

  // Reads the highest level of x86 instructions that notes call needed (x86-64 psABI, "GNU
  // properties"). The loader of an old glibc ignores these notes, so unreadable ones are not a
  // problem.
  void read_isa_level(const Segment& segment) {
    if (elf_.machine != EM_X86_64 && elf_.machine != EM_386) return;
    const std::uint64_t unit = elf_.wide ? 8 : 4;
    auto padded = [](std::uint64_t size, std::uint64_t to) { return (size + to - 1) / to * to; };
    const auto notes = file_.slice(segment.offset, segment.file_size, "notes");
    for (std::uint64_t at = 0; notes && notes->size() - at >= 12;) {
      const auto note = *notes->slice(at, 12, "note");
      const std::uint64_t start = 12 + padded(note.u32(0), 4), size = note.u32(4);
      const auto owner = notes->slice(at + 12, 4, "owner of a note");
      const auto properties = notes->slice(at + start, size, "properties");
      if (!owner || !properties) return;
      at += padded(start + size, note.u32(8) == NT_GNU_PROPERTY_TYPE_0 ? unit : 4);
      if (note.u32(8) != NT_GNU_PROPERTY_TYPE_0 || note.u32(0) != 4 ||
          owner->text() != std::string_view("GNU\0", 4))
        continue;
      for (std::uint64_t next = 0; properties->size() - next >= 12;) {
        const auto property = *properties->slice(next, 12, "property");
        if (property.u32(0) == GNU_PROPERTY_X86_ISA_1_NEEDED && property.u32(4) == 4) {
          for (unsigned level = 2; level <= 4; ++level)
            if (property.u32(8) >> (level - 1) & 1) elf_.isa_level = level;
        }
        next += padded(8 + std::uint64_t{property.u32(4)}, unit);
        if (next > properties->size()) return;
      }
      if (at > notes->size()) return;
    }
  }

  Result<void> read_sections(Bytes header) {
    const auto offset = word(header, 32, 40);
    const std::uint64_t size = header.u16(elf_.wide ? 58 : 46), expected = elf_.wide ? 64 : 40;
    std::uint64_t count = header.u16(elf_.wide ? 60 : 48),
                  names_index = header.u16(elf_.wide ? 62 : 50);
    if (offset == 0) return {};  // stripped of section headers
    if (size != expected)
      return fail(elf_.wide ? 58 : 46, "section header size " + std::to_string(size));
    const auto first = TRY(file_.slice(offset, size, "first section header"));
    if (count == 0) count = word(first, 20, 32);
    if (names_index == SHN_XINDEX) names_index = first.u32(elf_.wide ? 40 : 24);
    if (count > most_elf_entries) return fail(offset, std::to_string(count) + " sections");
    const auto table = TRY(file_.slice(offset, size * count, "section headers"));
    auto contents = [&](Bytes entry) {
      return file_.window(word(entry, 16, 24), word(entry, 20, 32), "section");
    };
    auto entry_at = [&](std::uint64_t index) {
      return table.slice(index * size, size, "section header");
    };
    const auto names = TRY(contents(TRY(entry_at(names_index))));
    std::uint64_t total = 0;
    for (std::uint64_t i = 1; i < count; ++i) {
      const auto entry = TRY(entry_at(i));
      const auto name = names.c_string(entry.u32(0), "section name");
      if (!name) {
        problem(name.error());
        continue;
      }
      const auto type = entry.u32(4);
      if (is_debug_section(*name)) {
        TRY_VOID(afford(sizeof(std::string_view), entry.origin(), "sections"));
        elf_.debug_sections.emplace_back(*name);
      }
      if (type == SHT_NOBITS) continue;
      auto data = contents(entry);
      if (!data) {
        problem(
            {data.error().offset, std::string(name->substr(0, 100)) + ": " + data.error().what});
        continue;
      }
      // Sections do not overlap; a file that claims it could have any part of it read many times.
      total += data->size();
      if (total > 2 * file_.size())
        return fail(entry.origin(), "sections that together are larger than the file");
      TRY_VOID(afford(sizeof(ElfSection), entry.origin(), "sections"));
      elf_.sections.push_back({*name, *data});
      if (type == SHT_DYNSYM)
        symbol_section_ = {.address = word(entry, 12, 16), .file_size = data->size()};
      if (type != SHT_SYMTAB) continue;
      elf_.has_symbol_table = true;
      if (elf_.type != ET_REL) continue;
      auto strings_entry = entry_at(entry.u32(elf_.wide ? 40 : 24));
      if (!strings_entry) continue;
      if (auto strings = contents(*strings_entry)) {
        const auto symbols = TRY(data->whole("symbols"));
        TRY_VOID(read_symbols(symbols, *strings));
      }
    }
    return {};
  }

  static bool is_debug_section(std::string_view name) {
    return name.starts_with(".debug_") || name.starts_with(".zdebug_") || name == ".gdb_index";
  }

  // Returns the bytes from a virtual address to the end of its segment and of the segments that
  // continue it both in memory and in the file: patchelf lets a table run across such a border.
  Result<Bytes> at_address(std::uint64_t address, std::string_view what) const {
    constexpr std::uint64_t header = EI_NIDENT;
    for (const auto& segment : segments_) {
      if (segment.type == PT_LOAD && address >= segment.address &&
          address - segment.address < segment.file_size) {
        const auto into = address - segment.address;
        if (segment.offset + into < header)
          return fail(address, std::string(what) + " is said to lie in the ELF header");
        auto size = segment.file_size;
        for (const auto& next : segments_) {  // in the order of their addresses
          if (next.type == PT_LOAD && next.address - segment.address == size &&
              next.offset - segment.offset == size)
            size += next.file_size;
        }
        return file_.window(segment.offset + into,
                            std::min(size - into, left_from(segment.offset + into)), what);
      }
    }
    return fail(address, std::string(what) + " is at an address that no segment loads");
  }
  std::uint64_t left_from(std::uint64_t offset) const {
    return offset < file_.size() ? file_.size() - offset : 0;
  }

  Result<void> read_dynamic() {
    const auto segment = std::ranges::find(segments_, std::uint64_t{PT_DYNAMIC}, &Segment::type);
    if (segment == segments_.end()) return {};
    elf_.dynamic = true;
    const auto table = TRY(file_.slice(segment->offset, segment->file_size, "dynamic segment"));
    const std::uint64_t size = elf_.wide ? 16 : 8;
    for (std::uint64_t at = 0; table.size() - at >= size; at += size) {
      const auto entry = TRY(table.slice(at, size, "dynamic entry"));
      const auto tag = word(entry, 0, 0), value = word(entry, 4, 8);
      if (tag == DT_NULL) break;
      TRY_VOID(afford(64, entry.origin(), "dynamic entries"));
      if (tag == DT_NEEDED)
        dynamic_.needed.push_back(value);
      else
        dynamic_.values[tag] = value;
    }
    attempt([&] { return read_names(); });
    if (dynamic_.has(DT_VERDEF)) attempt([&] { return read_version_definitions(); });
    if (dynamic_.has(DT_VERNEED)) attempt([&] { return read_version_needs(); });
    if (dynamic_.has(DT_SYMTAB)) attempt([&] { return read_dynamic_symbols(); });
    elf_.no_default_folders = dynamic_[DT_FLAGS_1] & DF_1_NODEFLIB;
    auto& hardening = elf_.hardening;
    hardening.bind_now = dynamic_.values.contains(DT_BIND_NOW) ||
                         (dynamic_[DT_FLAGS] & DF_BIND_NOW) || (dynamic_[DT_FLAGS_1] & DF_1_NOW);
    hardening.text_relocations =
        dynamic_.values.contains(DT_TEXTREL) || (dynamic_[DT_FLAGS] & DF_TEXTREL);
    if (hardening.relro == ElfHardening::Relro::partial && hardening.bind_now)
      hardening.relro = ElfHardening::Relro::full;
    return {};
  }

  Result<void> read_names() {
    if (!dynamic_.has(DT_STRTAB)) return {};
    strings_ = TRY(at_address(dynamic_[DT_STRTAB], "dynamic string table"));
    strings_ = TRY(
        strings_.window(0, std::min(dynamic_[DT_STRSZ], strings_.size()), "dynamic string table"));
    auto room = 2 * strings_.size();  // sound names do not overlap
    for (auto offset : dynamic_.needed) {
      const auto name = TRY(text_at(offset, "NEEDED"));
      if (name.size() > room)
        return fail(strings_.origin(),
                    "NEEDED names that overlap: they are longer than their table");
      room -= name.size();
      elf_.needed.push_back(name);
    }
    using Name = std::pair<std::uint64_t, std::string_view*>;
    for (auto [tag, target] : std::array{Name{DT_SONAME, &elf_.soname}, Name{DT_RPATH, &elf_.rpath},
                                         Name{DT_RUNPATH, &elf_.runpath}}) {
      if (dynamic_.values.contains(tag)) *target = TRY(text_at(dynamic_[tag], "dynamic string"));
    }
    return {};
  }
  // Reads past the end of the table if necessary: the loader ignores its size, and some tools write
  // behind its end.
  Result<std::string_view> text_at(std::uint64_t offset, std::string_view what) const {
    if (auto text = strings_.c_string(offset, what)) return text;
    return TRY(at_address(dynamic_[DT_STRTAB], what)).c_string(offset, what);
  }

  // Reads a version's name and takes its size from `room`: in a sound table, few names share bytes.
  Result<std::string_view> version_name(std::uint32_t offset, std::uint64_t& room) const {
    const auto name = TRY(strings_.c_string(offset, "version"));
    if (name.size() >= room)
      return fail(strings_.origin(),
                  "version names that overlap: they are longer than their table");
    room -= name.size();
    return name;
  }
  std::uint64_t room_for_versions() const {
    constexpr std::uint64_t always_fine = 1 << 20;
    return 2 * strings_.size() + always_fine;
  }

  // Reads a chain of needed libraries, each with a chain of the versions needed from it. Follows
  // the links to the end, as the loader does, and ignores the entry counts beside them
  // (DT_VERNEEDNUM ...).
  Result<void> read_version_needs() {
    const auto table = TRY(at_address(dynamic_[DT_VERNEED], "version needs"));
    auto room = room_for_versions();
    for (std::uint64_t at = 0;;) {
      const auto need = TRY(table.slice(at, 16, "version need"));
      const auto library = TRY(version_name(need.u32(4), room));
      for (auto entry_at = at + need.u32(8);;) {
        const auto entry = TRY(table.slice(entry_at, 16, "needed version"));
        const auto version = TRY(version_name(entry.u32(8), room));
        const bool weak = entry.u16(4) & VER_FLG_WEAK;
        TRY_VOID(afford(sizeof(ElfVersionNeed), entry.origin(), "version needs"));
        elf_.version_needs.push_back({library, version, weak});
        versions_[entry.u16(6) & 0x7FFF] = {version, library};
        if (entry.u32(12) == 0) break;
        entry_at += entry.u32(12);
      }
      if (need.u32(12) == 0) break;
      at += need.u32(12);
    }
    return {};
  }

  Result<void> read_version_definitions() {
    const auto table = TRY(at_address(dynamic_[DT_VERDEF], "version definitions"));
    auto room = room_for_versions();
    for (std::uint64_t at = 0;;) {
      const auto definition = TRY(table.slice(at, 20, "version definition"));
      const auto name_entry =
          TRY(table.slice(at + definition.u32(12), 8, "name of a version definition"));
      const auto name = TRY(version_name(name_entry.u32(0), room));
      const bool names_file = definition.u16(2) & VER_FLG_BASE;
      if (!names_file) {
        TRY_VOID(afford(sizeof(std::string_view), definition.origin(), "version definitions"));
        elf_.version_definitions.push_back(name);
        versions_[definition.u16(4) & 0x7FFF] = {name, {}};
      }
      if (definition.u32(16) == 0) break;
      at += definition.u32(16);
    }
    return {};
  }

  std::uint64_t symbol_size() const { return elf_.wide ? 24 : 16; }

  // Counts the symbols by the hash table: the symbol table does not say how long it is.
  Result<std::uint64_t> count_symbols(std::uint64_t room) const {
    if (dynamic_[DT_HASH]) {
      const auto table = TRY(at_address(dynamic_[DT_HASH], "hash table"));
      // Its words have 4 bytes, except in 64-bit files for IBM Z and Alpha.
      constexpr std::uint16_t em_alpha = 0x9026;
      if (elf_.wide && (elf_.machine == EM_S390 || elf_.machine == em_alpha))
        return TRY(table.slice(0, 16, "hash table")).u64(8);
      return TRY(table.slice(0, 8, "hash table")).u32(4);
    }
    if (!dynamic_[DT_GNU_HASH]) return fail(0, "no hash table to count the symbols with");
    const auto table = TRY(at_address(dynamic_[DT_GNU_HASH], "GNU hash table"));
    const auto header = TRY(table.slice(0, 16, "GNU hash table"));
    const std::uint64_t bucket_count = header.u32(0), first = header.u32(4);
    const std::uint64_t buckets_at = 16 + std::uint64_t{header.u32(8)} * (elf_.wide ? 8 : 4);
    const auto buckets = TRY(table.slice(buckets_at, bucket_count * 4, "GNU hash buckets"));
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < bucket_count; ++i)
      last = std::max<std::uint64_t>(last, buckets.u32(i * 4));
    if (last < first) return first > 1 ? first : count_unhashed_symbols(room);
    const auto chains_at = buckets_at + bucket_count * 4;
    for (;; ++last) {  // to the end of the last chain: its entry is odd
      if (TRY(table.slice(chains_at + (last - first) * 4, 4, "GNU hash chain")).u32(0) & 1)
        return last + 1;
    }
  }

  // GNU ld puts no symbols into the hash table of a library that exports none. Then the section
  // header tells their number; without one, the next thing in memory does: another table, or the
  // segment's end.
  std::uint64_t count_unhashed_symbols(std::uint64_t room) const {
    const auto start = dynamic_[DT_SYMTAB];
    if (symbol_section_.address == start && symbol_section_.file_size <= room)
      return symbol_section_.file_size / symbol_size();
    auto end = start + room;
    for (const auto tag :
         {DT_STRTAB, DT_VERSYM, DT_VERNEED, DT_VERDEF, DT_GNU_HASH, DT_RELA, DT_REL}) {
      if (const auto address = dynamic_[tag]; address > start && address < end) end = address;
    }
    return (end - start) / symbol_size();
  }

  Result<void> read_dynamic_symbols() {
    auto table = TRY(at_address(dynamic_[DT_SYMTAB], "dynamic symbols"));
    const auto count = TRY(count_symbols(table.size()));
    if (count > most_elf_entries)
      return fail(table.origin(), std::to_string(count) + " dynamic symbols");
    table = TRY(table.slice(0, count * symbol_size(), "dynamic symbols"));
    Bytes version_indexes;
    if (dynamic_.has(DT_VERSYM)) {
      const auto all = TRY(at_address(dynamic_[DT_VERSYM], "symbol versions"));
      version_indexes = TRY(all.slice(0, std::min(count * 2, all.size()), "symbol versions"));
    }
    return read_symbols(table, strings_, version_indexes);
  }

  Result<void> read_symbols(Bytes table, Bytes strings, Bytes version_indexes = {}) {
    const auto size = symbol_size(), count = table.size() / size;
    // Linkers let names share their ends; in a sound table, the names together are never much
    // longer than the table.
    constexpr std::uint64_t most_sharing = 8, always_fine = 1 << 20;
    std::uint64_t names_left = strings.size() * most_sharing + always_fine;
    TRY_VOID(afford(count * sizeof(ElfSymbol), table.origin(), "symbols"));
    elf_.symbols.reserve(elf_.symbols.size() + count);
    for (std::uint64_t i = 1; i < count; ++i) {
      const auto entry = *table.slice(i * size, size, "symbol");
      const unsigned info = entry.u8(elf_.wide ? 4 : 12), binding = info >> 4;
      if (binding == STB_LOCAL) continue;
      const auto name = TRY(strings.c_string(entry.u32(0), "symbol name"));
      if (name.empty()) continue;
      if (name.size() >= names_left)
        return fail(entry.origin(), "symbol names that overlap: they are longer than their table");
      names_left -= name.size();
      const unsigned visibility = entry.u8(elf_.wide ? 5 : 13) & 3;
      const bool exported = visibility == STV_DEFAULT || visibility == STV_PROTECTED;
      const bool undefined = entry.u16(elf_.wide ? 6 : 14) == SHN_UNDEF;
      if (!undefined && !exported && elf_.type != ET_REL) continue;
      ElfSymbol symbol{.name = name, .defined = !undefined, .weak = binding == STB_WEAK};
      if (const auto raw = version_indexes.slice(i * 2, 2, "symbol version")) {
        const auto index = raw->u16(0) & 0x7FFF;
        symbol.default_version = !(raw->u16(0) & 0x8000);
        symbol.first_version = index == 2;
        if (auto found = versions_.find(static_cast<std::uint16_t>(index));
            found != versions_.end()) {
          symbol.version = found->second.version;
          symbol.library = found->second.library;
        }
      }
      if (symbol.name == "__stack_chk_fail") elf_.hardening.stack_protector = true;
      elf_.symbols.push_back(symbol);
    }
    return {};
  }

  struct Version {
    std::string_view version, library;
  };

  Bytes file_;
  Loan& memory_;
  Elf& elf_;
  std::vector<Segment> segments_;
  Segment symbol_section_{};  // of the dynamic symbols, if section headers name it
  Dynamic dynamic_;
  Bytes strings_;
  std::map<std::uint16_t, Version> versions_;  // by the index that symbols use
};

}  // namespace

bool looks_like_elf(Bytes file) {
  const auto start = file.slice(0, SELFMAG, "magic");
  return start && start->text() == ELFMAG;
}

Result<Elf> read_elf(Bytes file, Loan& memory) {
  if (!looks_like_elf(file)) return fail(file.origin(), "not an ELF file");
  Elf elf;
  if (auto read = ElfReader(file, memory, elf).read(); !read) return std::unexpected(read.error());
  return elf;
}

namespace {

// Calls `use` with the read-only data, section by section, until it returns true.
template <class Use>
bool any_read_only(const Elf& elf, const Use& use) {
  return std::ranges::any_of(elf.sections, [&](const ElfSection& section) {
    if (!section.name.starts_with(".rodata")) return false;
    const auto data = section.data.whole("read-only data");
    return data && use(data->text());
  });
}

// Texts follow one another, each with a NUL at its end; the first follows numbers of four or more
// bytes, whose last byte may look like a letter: 1.0 ends in a question mark. The last of these may
// be the start of a text that is copied as one number: 16 bytes without a NUL.
bool begins_text(std::string_view data, std::size_t at) {
  auto is_letter = [](char c) { return c >= ' ' && c <= '~'; };
  constexpr std::size_t number = 4;
  if (at == 0 || !is_letter(data[at - 1])) return true;
  constexpr std::size_t widest = 16;
  if (at % widest == 0 && (starts_name(data[at - 1]) || is_digit(data[at - 1]))) return true;
  return at % number == 0 && !std::ranges::all_of(data.substr(at - number, number), is_letter);
}

}  // namespace

bool has_text(const Elf& elf, const std::string& text) {
  const auto wanted = text + '\0';
  return any_read_only(elf, [&](std::string_view data) {
    for (auto at = find_in(data, wanted); at != data.npos; at = find_in(data, wanted, at + 1))
      if (begins_text(data, at)) return true;
    return false;
  });
}

std::string text_after(const Elf& elf, std::string_view start) {
  std::string found;
  any_read_only(elf, [&](std::string_view data) {
    const auto at = find_in(data, start);
    if (at == data.npos) return false;
    constexpr std::size_t longest = 200;
    const auto rest = data.substr(at + start.size(), longest);
    found = rest.substr(0, rest.find('\0'));
    return true;
  });
  return found;
}

std::string machine_name(const Elf& elf) {
  switch (elf.machine) {
    case EM_X86_64:
      return elf.wide ? "x86_64" : "x32";
    case EM_AARCH64:
      return elf.big_endian ? "aarch64_be" : "aarch64";
    case EM_386:
      return "i686";
    case EM_ARM:  // the loader separates libraries that pass floats in different registers
      return elf.big_endian ? "armeb" : elf.flags & EF_ARM_ABI_FLOAT_SOFT ? "arm" : "armv7l";
    case EM_PPC64:
      return elf.big_endian ? "ppc64" : "ppc64le";
    case EM_S390:
      return elf.wide ? "s390x" : "s390";
    case EM_RISCV:
      return elf.wide ? "riscv64" : "riscv32";
    case em_loongarch:
      return "loongarch64";
    case EM_CUDA:
      return "cuda";
    case EM_AMDGPU:
      return "amdgpu";
    case em_intelgt:
      return "intelgt";
    case EM_QDSP6:
      return "hexagon";
    case EM_BPF:
      return "bpf";
    default:
      return "machine-" + std::to_string(elf.machine);
  }
}

bool is_host_machine(const Elf& elf) {
  static constexpr std::array hosts{EM_X86_64, EM_AARCH64, EM_386,    EM_ARM,      EM_PPC,
                                    EM_PPC64,  EM_S390,    EM_RISCV,  EM_MIPS,     EM_SPARCV9,
                                    EM_SPARC,  EM_IA_64,   EM_PARISC, em_loongarch};
  return contains(hosts, int{elf.machine});
}

}  // namespace wheelscope
