// What the first bytes of a shared library tell of it.
//
// A linker puts the symbols, their names and the needed versions in front of the code; the dynamic
// segment, which says where they lie, comes behind it. So these tables are looked for by what is in
// them. Each needed version has a hash of its name beside it, which makes them certain:
//
//   GNU ld, gold, mold    symbols, names, indexes of versions, needed versions, relocations, code
//   ... lld                   symbols, indexes of versions, needed versions, hash table, names ...
//
// Names of the table that no symbol and no version uses are those of needed libraries, the
// library's own, and its search paths.
#pragma once

#include <optional>
#include <string_view>

#include "readers/elf_file.h"

namespace wheelscope {

// Nothing: more bytes are needed, or the file is of another make. `own_name`: that of its file.
// Left out: sections, search paths, defined versions, versions of symbols.
std::optional<Elf> read_elf_start(Bytes start, std::string_view own_name, Loan& memory);

}  // namespace wheelscope
