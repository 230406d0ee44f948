// Finds the tables of a shared library by their contents.
//
// A linker puts the symbols, their names and the needed versions in front of the code; the dynamic
// segment, which says where they lie, comes behind it. So these tables are found by their contents.
// Each needed version has a hash of its name beside it, which makes the result certain:
//
//   GNU ld, gold, mold    symbols, names, indexes of versions, needed versions, relocations, code
//   ... lld                   symbols, indexes of versions, needed versions, hash table, names ...
//
// Names in the table that no symbol and no version uses are those of needed libraries, the library
// itself, and its search paths.
#include "readers/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace wheelscope {
namespace {

constexpr std::uint64_t symbol_size = 24, need_size = 16;

// Returns the hash of System V's ABI.
std::uint32_t elf_hash(std::string_view name) {
  std::uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    const auto top = hash & 0xF0000000;
    hash = (hash ^ (top >> 24)) & ~top;
  }
  return hash;
}

// Returns the common part of a library's names: libx for libx.so.1, libx.so.1.2.3 and
// libx.cpython-311.so.
std::string_view library_stem(std::string_view name) {
  return name.substr(0, name.find('.'));
}

bool is_text(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c > ' ' && c != 0x7F; });
}

class Finder {
 public:
  Finder(Bytes start, std::string_view own_name, Loan& memory, Elf& elf)
      : start_(start), text_(start.text()), own_name_(own_name), memory_(memory), elf_(elf) {}

  bool run() {
    if (!read_header()) return false;
    if (!elf_.dynamic) return true;  // a static program needs nothing
    return find_needs() && find_symbols() && keep_symbols() && find_libraries();
  }

 private:
  bool read_header() {
    const auto header = start_.slice(0, 64, "ELF header");
    if (!header || header->u8(EI_CLASS) != ELFCLASS64 || header->u8(EI_DATA) != ELFDATA2LSB)
      return false;
    elf_.type = header->u16(16);
    elf_.machine = header->u16(18);
    elf_.flags = header->u32(48);
    if ((elf_.type != ET_DYN && elf_.type != ET_EXEC) || !is_host_machine(elf_)) return false;
    constexpr std::uint64_t entry_size = 56;
    const std::uint64_t count = header->u16(56);
    if (header->u16(54) != entry_size) return false;
    const auto table = start_.slice(header->u64(32), count * entry_size, "program headers");
    if (!table) return false;
    tables_at_ = header->u64(32) + table->size();
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto at = i * entry_size;
      elf_.dynamic |= table->u32(at) == PT_DYNAMIC;
      if (table->u32(at) != PT_INTERP) continue;
      const auto name = start_.c_string(table->u64(at + 8), "interpreter");
      if (!name) return false;
      elf_.interpreter = *name;
    }
    return true;
  }

  std::string_view name_at(std::uint64_t offset) const {
    const auto at = names_ + offset;
    if (at >= text_.size()) return {};
    const auto end = text_.find('\0', at);
    return end == text_.npos ? std::string_view() : text_.substr(at, end - at);
  }

  // Finds the table of needed versions and, by the first of its names, the table of names.
  bool find_needs() {
    constexpr std::string_view usual = "GLIBC_2.";
    for (auto at = text_.find(usual); at != text_.npos; at = text_.find(usual, at + 1)) {
      const auto end = text_.find('\0', at);
      if (end == text_.npos) return false;
      if (at == 0 || text_[at - 1] != '\0') continue;
      strings_.emplace(elf_hash(text_.substr(at, end - at)), at);
    }
    if (strings_.empty()) return false;
    for (auto at = (tables_at_ + 3) / 4 * 4; at + need_size <= text_.size(); at += 4) {
      if (start_.u16(at) != 1 || start_.u16(at + 2) == 0) continue;
      if (try_needs(at)) return true;
    }
    return false;
  }

  bool try_needs(std::uint64_t at) {
    for (auto need_at = at;;) {  // the first need with a version of the C library
      const auto need = start_.slice(need_at, need_size, "need");
      if (!need || need->u16(0) != 1) return false;
      auto entry_at = need_at + need->u32(8);
      for (unsigned i = 0; i < need->u16(2); ++i) {
        const auto entry = start_.slice(entry_at, need_size, "version");
        if (!entry) return false;
        const auto [first, last] = strings_.equal_range(entry->u32(0));
        for (auto found = first; found != last; ++found) {
          if (found->second <= entry->u32(8)) continue;
          names_ = found->second - entry->u32(8);
          if (text_[names_] == '\0' && read_needs(at)) return true;
        }
        if (entry->u32(12) == 0) break;
        entry_at += entry->u32(12);
      }
      if (need->u32(12) == 0) return false;
      need_at += need->u32(12);
    }
  }

  bool read_needs(std::uint64_t at) {
    elf_.version_needs.clear();
    used_.clear();
    needs_at_ = at;
    for (std::uint64_t total = 0;;) {
      const auto need = start_.slice(at, need_size, "need");
      if (!need || need->u16(0) != 1) return false;
      const auto library = name_at(need->u32(4));
      if (!is_text(library)) return false;
      used_.insert(need->u32(4));
      auto entry_at = at + need->u32(8);
      for (unsigned i = 0; i < need->u16(2); ++i) {
        const auto entry = start_.slice(entry_at, need_size, "version");
        if (!entry || ++total > most_elf_entries) return false;
        const auto version = name_at(entry->u32(8));
        if (!is_text(version) || elf_hash(version) != entry->u32(0)) return false;
        if (!memory_.take(sizeof(ElfVersionNeed) + 64)) return false;
        used_.insert(entry->u32(8));
        elf_.version_needs.push_back({library, version, (entry->u16(4) & VER_FLG_WEAK) != 0});
        if (entry->u32(12) == 0) break;
        entry_at += entry->u32(12);
      }
      if (need->u32(12) == 0) return true;
      at += need->u32(12);
    }
  }

  bool is_null(std::uint64_t at) const {
    return text_.substr(at, symbol_size).find_first_not_of('\0') == text_.npos;
  }

  bool is_symbol(std::uint64_t at) const {
    const auto symbol = start_.slice(at, symbol_size, "symbol");
    if (!symbol) return false;
    const unsigned info = symbol->u8(4), binding = info >> 4, type = info & 15;
    if (binding > STB_WEAK && binding != STB_GNU_UNIQUE) return false;
    if (type > STT_TLS && type != STT_GNU_IFUNC) return false;
    if (binding == STB_LOCAL) return true;
    return is_text(name_at(symbol->u32(0)));
  }

  bool are_symbols(std::uint64_t at, std::uint64_t count) const {
    for (std::uint64_t i = 1; i < count; ++i) {
      if (!is_symbol(at + i * symbol_size)) return false;
    }
    return true;
  }

  bool find_symbols() {
    if (names_ < needs_at_) {  // they end where the names start
      auto at = names_;
      while (at >= tables_at_ + symbol_size && !is_null(at)) {
        at -= symbol_size;
        if (!is_null(at) && !is_symbol(at)) return false;
      }
      symbols_ = at;
      count_ = (names_ - at) / symbol_size;
      return is_null(at) && count_ > 1;
    }
    // lld: each has two bytes for the index of its version behind the table
    constexpr std::uint64_t with_index = symbol_size + 2;
    for (auto at = (tables_at_ + 7) / 8 * 8; at + with_index * 2 <= needs_at_; at += 8) {
      if (!is_null(at)) continue;
      const auto count = (needs_at_ - at) / with_index;
      const auto left = (needs_at_ - at) % with_index;
      if (left >= 4 || !are_symbols(at, count)) continue;
      symbols_ = at;
      count_ = count;
      return true;
    }
    return false;
  }

  bool keep_symbols() {
    if (!memory_.take(count_ * (sizeof(ElfSymbol) + 32))) return false;
    elf_.symbols.reserve(count_);
    for (std::uint64_t i = 1; i < count_; ++i) {
      const auto entry = start_.slice(symbols_ + i * symbol_size, symbol_size, "symbol");
      if (!entry) return false;
      used_.insert(entry->u32(0));
      const unsigned binding = entry->u8(4) >> 4;
      if (binding == STB_LOCAL) continue;
      const unsigned visibility = entry->u8(5) & 3;
      const bool exported = visibility == STV_DEFAULT || visibility == STV_PROTECTED;
      const bool undefined = entry->u16(6) == SHN_UNDEF;
      if (!undefined && !exported) continue;
      elf_.symbols.push_back(
          {.name = name_at(entry->u32(0)), .defined = !undefined, .weak = binding == STB_WEAK});
    }
    return true;
  }

  bool is_library_at(std::uint64_t at) const {
    const auto name = name_at(at - names_);
    return is_text(name) && name.starts_with("lib") && name.find(".so") != name.npos;
  }

  // Reads the names that nothing else uses, up to the first bytes that are not a name.
  bool find_libraries() {
    std::unordered_set<std::string_view> known;
    for (const auto& need : elf_.version_needs) {
      if (known.insert(need.library).second) elf_.needed.push_back(need.library);
    }
    std::uint64_t last_used = 0;
    for (const auto offset : used_) last_used = std::max(last_used, offset);
    for (std::uint64_t offset = 1; names_ + offset < text_.size();) {
      const auto end = text_.find('\0', names_ + offset);
      if (end == text_.npos) return false;  // the rest of the table is not here
      const auto name = text_.substr(names_ + offset, end - names_ - offset);
      if (!is_text(name) && offset > last_used) {
        // CMake writes a shorter search path over the linker's, and zeros over the rest of that.
        const auto next = text_.find_first_not_of('\0', end);
        if (!name.empty() || next == text_.npos || !is_library_at(next)) return true;
        offset = next - names_;
        continue;
      }
      const bool library = name.find(".so") != name.npos && name.find_first_of("$:") == name.npos;
      // A library that defines versions has its own name among its symbols too.
      if (library && library_stem(name) == library_stem(own_name_) && !known.contains(name))
        elf_.soname = name;
      else if (library && !used_.contains(offset) && known.insert(name).second)
        elf_.needed.push_back(name);
      offset += name.size() + 1;
    }
    return false;
  }

  Bytes start_;
  std::string_view text_, own_name_;
  Loan& memory_;
  Elf& elf_;
  std::uint64_t tables_at_ = 0, names_ = 0, needs_at_ = 0, symbols_ = 0, count_ = 0;
  std::unordered_multimap<std::uint32_t, std::uint64_t> strings_;  // hash -> where the text is
  std::unordered_set<std::uint64_t> used_;                         // offsets of names
};

}  // namespace

std::optional<Elf> read_elf_start(Bytes start, std::string_view own_name, Loan& memory) {
  if (!looks_like_elf(start)) return std::nullopt;
  Elf elf;
  if (!Finder(start, own_name, memory, elf).run()) return std::nullopt;
  return elf;
}

}  // namespace wheelscope
