// The ELF reader: what the dynamic loader, a linker and a debugger would see in a file.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "source/budget.h"
#include "source/bytes.h"
#include "text/text.h"

namespace wheelscope {

constexpr std::uint64_t most_elf_entries = 1 << 24;  // of any table

// Texts are views into the file, so reading costs no more memory than the tables themselves.
struct ElfSymbol {
  std::string_view name;
  std::string_view version;  // GLIBC_2.17; empty: none
  std::string_view library;  // the NEEDED library that should define the version
  bool defined = false;      // visible to other files; false for hidden symbols
  bool weak = false;
  bool default_version = true;  // false for name@V, a version kept for old binaries
  bool first_version = false;   // of the first version that the file defines
};

struct ElfSection {
  std::string_view name;
  Bytes data;  // a window: slice it before reading
};

struct ElfHardening {
  enum class Relro { none, partial, full };
  Relro relro = Relro::none;
  bool bind_now = false;
  bool nx = false;               // the stack is not executable
  bool stack_protector = false;  // calls __stack_chk_fail
  bool text_relocations = false;
};

struct ElfVersionNeed {
  std::string_view library, version;
  bool weak = false;  // the loader does not insist on it
};

struct Elf {
  bool wide = true;  // 64 bits
  bool big_endian = false;
  std::uint8_t abi_version = 0;
  std::uint16_t type = 0;
  std::uint16_t machine = 0;
  std::uint32_t flags = 0;
  unsigned isa_level = 0;  // x86: the instruction level that it needs (x86-64-v3: 3); 0: any
  bool cut_off = false;    // a mapped segment runs past the end of the file
  bool dynamic = false;    // has a dynamic segment
  bool no_default_folders = false;  // DF_1_NODEFLIB
  std::string_view soname, rpath, runpath, interpreter;
  std::vector<std::string_view> needed;
  std::vector<ElfVersionNeed> version_needs;
  std::vector<std::string_view> version_definitions;
  std::vector<ElfSymbol> symbols;  // the dynamic ones; all, of an object file
  ElfHardening hardening;
  std::vector<ElfSection> sections;  // with contents; in file order
  std::vector<std::string_view> debug_sections;
  bool has_symbol_table = false;        // .symtab: not stripped
  std::vector<Error> problems;          // parts that could not be read
  std::vector<Error> section_problems;  // in section headers, which no loader reads
};

bool looks_like_elf(Bytes file);

// Reads a file. Fails if the file header is unreadable. A broken table, or one that costs more than
// the allowance has left, becomes one of `problems`, and the rest is still read.
Result<Elf> read_elf(Bytes file, Loan& memory);

// has_text: true if its read-only data contains the whole text. text_after: what follows the start
// of a text there.
bool has_text(const Elf& elf, const std::string& text);
std::string text_after(const Elf& elf, std::string_view start);

// Returns x86_64, aarch64 and so on, as platform tags spell it; "machine-N" for one without a name
// here.
std::string machine_name(const Elf& elf);

// True for a computer's processor, for which an operating system's loader maps files.
bool is_host_machine(const Elf& elf);

NAMES(ElfHardening::Relro, "none", "partial", "full")

// Reads what the first bytes of a shared library tell about it, except sections, search paths,
// defined versions and versions of symbols. Returns nothing if it needs more bytes or does not know
// the file's structure. `own_name`: the name of the file.
std::optional<Elf> read_elf_start(Bytes start, std::string_view own_name, Loan& memory);

}  // namespace wheelscope
