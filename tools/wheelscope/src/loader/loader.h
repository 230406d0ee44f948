// The rules of the dynamic loader (glibc's ld.so): which file a NEEDED name leads to, and which
// definition a symbol is bound to. Files are known by path; wheels are unknown here.
//
// A name without a slash is searched for in this order (man 8 ld.so; elf/dl-load.c):
//   1. libraries that are already loaded, by a requested name or their SONAME
//   2. RPATH of the library that needs it, then of the one that loaded that library, up to the
//      program; only if the library that needs it has no RUNPATH. RPATH beside RUNPATH is ignored
//   3. LD_LIBRARY_PATH
//   4. RUNPATH of the library that needs it, and of no other
//   5. /etc/ld.so.cache, then the default folders; not for a library linked with -z nodefaultlib
// A file of another width, byte order or machine is skipped. A file that is not ELF ends the
// search, which has then failed. A name with a slash is a path.
//
// A symbol is searched for (elf/dl-lookup.c) in the program and what it needs, in the order of a
// breadth-first walk, and in what was opened globally; then in the library that was opened together
// with the one that needs the symbol, and in everything that this library needs, breadth first.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "facts/facts.h"
#include "text/text.h"

namespace wheelscope {

// The files that the loader can see. Paths are absolute, or relative to one common folder.
struct LoaderWorld {
  // Opens the file at a path; null if there is none. The address stays valid, and two paths of one
  // file give the same address.
  std::function<const LibraryFacts*(const std::string& path)> open;
  // True if there is a file that is damaged or not an ELF file.
  std::function<bool(const std::string& path)> is_damaged = [](const std::string&) {
    return false;
  };
  // Returns the path that ld.so.cache has for a name; empty if none.
  std::function<std::string(const std::string& name)> cached = [](const std::string&) {
    return std::string();
  };
  std::vector<std::string> library_path;     // LD_LIBRARY_PATH
  std::vector<std::string> default_folders;  // /lib/x86_64-linux-gnu ...
  const LibraryFacts* machine = nullptr;     // a file of the process's machine; null: the first one
  std::string lib = "lib";                   // values of $LIB and $PLATFORM
  std::string platform;
};

// A library in a process.
struct Loaded {
  std::string path;  // as it was found: $ORIGIN is its folder, whatever a link leads to
  const LibraryFacts* facts = nullptr;
  const Loaded* loader = nullptr;  // the library that first needed it; null: the program, or dlopen
  std::vector<std::string> names;  // that were requested
  std::vector<const Loaded*> needed;  // in the order of its NEEDED entries
  std::vector<std::string> absent;    // NEEDED names that lead nowhere
};

// One place where a library was looked for.
struct SearchStep {
  std::string place;  // RPATH of libx.so, LD_LIBRARY_PATH ...
  std::string path;
  enum class Result { absent, other_machine, damaged, found } result = Result::absent;
};

NAMES(SearchStep::Result, "absent", "other-machine", "damaged", "found")

struct MissingLibrary {
  std::string name;
  const Loaded* needed_by = nullptr;
};

// "version `V' not found (required by ...)"
struct MissingVersion {
  std::string library, version;
  const Loaded* needed_by = nullptr;
};

// The libraries that dlopen brought in.
struct Opening {
  const Loaded* root = nullptr;      // null: there is no such file
  std::vector<const Loaded*> scope;  // the root and everything it needs, breadth first
  std::vector<MissingLibrary> missing_libraries;
  std::vector<MissingVersion> missing_versions;
};

struct Binding {
  const Loaded* library = nullptr;  // null: no definition
  const SymbolFact* symbol = nullptr;
};

class Loader {
 public:
  explicit Loader(LoaderWorld world) : world_(std::move(world)), like_(world_.machine) {}

  // Starts a program: what it needs is the global scope.
  Opening start(const std::string& path);

  // Calls dlopen(path, RTLD_LOCAL or RTLD_GLOBAL). A name instead of a path is searched for as if
  // the program needed it.
  Opening open(const std::string& path, bool global = false);

  // Finds where a NEEDED name leads, and records the search. Loads nothing.
  const Loaded* already_loaded(const std::string& name) const;
  std::string search(const std::string& name, const Loaded* by,
                     std::vector<SearchStep>* steps = nullptr) const;

  // Binds an undefined symbol of a library of `opening`. The libraries must have been read with
  // their symbols.
  Binding bind(const SymbolFact& wanted, const Opening& opening) const;

  // Number of loaded libraries, and a way back to when there were only `count`.
  std::size_t count() const { return loaded_.size(); }
  void unload_after(std::size_t count);

 private:
  Opening bring(const std::string& path, bool is_name, bool global);
  Loaded* load(const std::string& path, const std::string& name, const Loaded* by);
  void load_needed(Loaded& library, Opening& opening, std::vector<Loaded*>& queue);
  void check_versions(const Loaded& library, Opening& opening) const;
  std::string find_path(const std::string& name, const Loaded* by,
                        std::vector<SearchStep>* steps) const;
  std::string expand(const std::string& entry, const Loaded& library) const;
  const SymbolFact* definition_in(const Loaded& library, const SymbolFact& wanted,
                                  std::size_t hash) const;

  // A hash table of definitions with open addressing. Libraries have hundreds of thousands of them,
  // so each must cost little. A symbol is looked up in dozens of libraries that do not have it, so
  // most slots are skipped by the hash alone.
  struct Slot {
    std::uint32_t hash = 0, number = 0;  // of the definition, plus one; 0: free
  };
  using Index = std::vector<Slot>;  // its size is a power of two
  const Index& index_of(const LibraryFacts& facts) const;

  LoaderWorld world_;
  std::vector<std::unique_ptr<Loaded>> loaded_;
  std::vector<const Loaded*> global_;
  const LibraryFacts* like_ = nullptr;  // the first file, whose machine is that of the process
  mutable std::unordered_map<const LibraryFacts*, Index> indexes_;
};

// True if the loader of a process that contains `process` accepts `library`.
bool same_machine(const LibraryFacts& process, const LibraryFacts& library);

// True if a definition matches a reference with or without a version (elf/dl-lookup.c).
bool version_fits(const SymbolFact& wanted, const SymbolFact& definition,
                  const LibraryFacts& definer);

}  // namespace wheelscope
