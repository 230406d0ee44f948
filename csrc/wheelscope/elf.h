// The ELF reader: what the dynamic loader, a linker and a debugger would see in a file.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bytes.h"

namespace wheelscope {

struct ElfSymbol {
  std::string_view name;     // points into the file
  std::string_view version;  // GLIBC_2.17; empty: none
  std::string_view library;  // the NEEDED library that the version is expected from
  bool defined = false;
  bool weak = false;
  bool default_version = true;  // false for name@V, a version kept for old binaries
};

struct ElfSection {
  std::string name;
  Bytes data;
};

struct ElfHardening {
  std::string relro = "none";  // none, partial, full
  bool bind_now = false;
  bool nx = false;               // the stack is not executable
  bool stack_protector = false;  // calls __stack_chk_fail
  bool text_relocations = false;
};

struct Elf {
  bool wide = true;  // 64 bits
  bool big_endian = false;
  std::uint16_t type = 0;
  std::uint16_t machine = 0;
  std::uint32_t flags = 0;
  bool dynamic = false;  // has a dynamic segment
  std::string soname, rpath, runpath, interpreter;
  std::vector<std::string> needed;
  std::map<std::string, std::set<std::string>> version_needs;  // library -> versions
  std::set<std::string> version_definitions;
  std::vector<ElfSymbol> symbols;  // the dynamic ones; of an object file, all
  ElfHardening hardening;
  std::vector<ElfSection> sections;  // with contents; in file order
  std::vector<std::string> debug_sections;
  bool has_symbol_table = false;  // .symtab: not stripped
  std::vector<Error> problems;    // parts that could not be read
};

bool looks_like_elf(Bytes file);

// Fails when the file header is unreadable; a broken table is one of `problems` and the rest is
// still read.
Result<Elf> read_elf(Bytes file);

// x86_64, aarch64, ... as platform tags spell it; "machine-N" for what has no name here.
std::string machine_name(const Elf& elf);

}  // namespace wheelscope
