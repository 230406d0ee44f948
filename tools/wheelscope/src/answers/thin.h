// Thinning: finds the device code of a file that some GPUs would choose, and makes the file without
// the rest.
//
// A fat binary is one module in several forms, and a GPU takes one of them (choose() in
// verdicts/cuda.h). The others are cut out of the container, which stays at its address. The freed
// bytes become zeros, and whole pages of zeros are removed from the file where its layout allows it
// (writers/elf_holes.h). The program that ships loose cubins and PTX texts picks among them itself,
// so everything that one of the GPUs could run stays, and the rest is left out of the wheel.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "readers/fatbin.h"
#include "source/budget.h"
#include "source/source.h"
#include "text/text.h"
#include "verdicts/verdicts.h"
#include "writers/elf_holes.h"

namespace wheelscope {

struct ThinFor {
  std::vector<std::string> gpus;  // compute capabilities: 8.0, 9.0
  std::set<std::string> ptx;      // the GPUs whose PTX is kept, even beside native code
};

// Parses "8.0;9.0+PTX", as torch writes it. Blanks and commas separate too, and 9.0a counts as 9.0.
// Fails on a GPU that the CUDA table does not have.
Result<ThinFor> parse_arch_list(std::string_view text);

// Device code of one kind and target.
struct CodeSum {
  std::uint64_t count = 0, bytes = 0;
};
using CodeSums = std::map<std::string, CodeSum>;  // by sm_90, compute_80

// Why all or part of a file's device code stays.
//   no_sections   without section headers, fat binaries cannot be told from other bytes
//   broken        a fat binary that cannot be read as a whole
//   shared_bytes  fat binaries that overlap
//   unknown_kind  entries of a kind that this program does not know
//   unserved      fat binaries with no code for these GPUs: the smallest entry of each stays, so
//                 that the driver says what it said before
enum class StaysWhole { no_sections, broken, shared_bytes, unknown_kind, unserved };

struct ContainerCut {
  FileRange whole;
  std::uint64_t header_size = 0;
  std::vector<FileRange> kept;  // entries, in order
  std::uint64_t kept_size() const;
};

// Fat binaries, counted by what a GPU finds in them.
struct ModuleCount {
  std::uint64_t native = 0, jit = 0, unserved = 0;

  bool serve() const { return native + jit > 0 || unserved == 0; }
  ModuleCount& operator+=(const ModuleCount& other);
};

struct FileThinning {
  std::string path;
  bool removed = false;  // a loose file that none of the GPUs could run
  std::vector<ContainerCut> cuts;
  CodeSums kept, cut;
  std::map<StaysWhole, std::uint64_t> stays;   // -> how many fat binaries or entries
  std::map<std::string, ModuleCount> modules;  // by GPU
  std::optional<HoleyLayout> layout;
  std::optional<KeepsZeros> keeps_zeros;    // why there is no layout although something was cut
  std::uint64_t size_before = 0, size = 0;  // of the file
  std::uint64_t zeros = 0;                  // new zeros that are still in the file

  bool changes() const { return removed || !cuts.empty(); }
};

// Reads the device code of a file of any form.
Fatbin read_all_device_code(const std::string& path, Bytes file, Loan& loan);

// A fat binary with its entries.
struct DeviceModule {
  FatbinContainer container;
  std::vector<const DeviceCode*> codes;

  FileRange range() const { return {container.whole.origin(), container.whole.size()}; }
  std::vector<std::string> targets(CodeKind kind) const;  // without repetition
};
std::vector<DeviceModule> modules_of(const Fatbin& fatbin);  // in file order

// Plans for each list of GPUs; returns no plans if the file has no device code.
std::vector<FileThinning> plan_thinning(const std::string& path, Bytes file,
                                        const std::vector<ThinFor>& wanted, Allowance& memory);

// Counts what a GPU finds in all of the files.
ModuleCount count_modules(const std::vector<FileThinning>& files, const std::string& gpu);

// Returns the thinned file: views of the old one, and the new parts.
Pieces thinned(Bytes file, const FileThinning& plan);

// The result for a wheel.
struct ThinnedWheel {
  std::string file;    // as it was given
  std::string sha256;  // of that file
  ThinFor wanted;
  std::vector<FileThinning> files;          // files with device code, in the order of the wheel
  std::vector<std::string> notes;           // other changes, and what could not be changed
  std::string written;                      // path of the new wheel; empty: none written
  std::uint64_t size_before = 0, size = 0;  // of the wheel; size is 0 if none is written
  std::uint64_t installed_before = 0, installed = 0;  // of its members

  bool changes() const;
};

// The result for an installed package.
struct ThinnedPackage {
  std::string name, version;
  std::uint64_t size_before = 0, size = 0;  // of the files that RECORD names
  std::vector<FileThinning> files;          // changed files, with absolute paths
  std::vector<std::string> notes;           // why a file stays as it is
  bool written = false;
};

NAMES(StaysWhole, "no-sections", "broken", "shared-bytes", "unknown-kind", "unserved")
NAMES(KeepsZeros, "no-room", "not-shared", "unusual")

// --- Checks that a file is a thinning of another one: less device code, and no other change.

//   missing      the file is gone, and was not loose device code
//   added        the original has no such file
//   contents     a file without device code whose bytes differ
//   host_code    loaded bytes outside the fat binaries differ, or the tables for loading them
//   device_code  code that the original does not have in this fat binary
enum class ThinDifference { missing, added, contents, host_code, device_code };

struct ByTarget {
  bool operator()(const std::string& a, const std::string& b) const { return target_before(a, b); }
};
using Gpus = std::set<std::string, ByTarget>;

struct ThinCheck {
  std::vector<std::pair<std::string, ThinDifference>> differences;  // file -> what
  Gpus lost;  // GPUs that would no longer get the code that they chose
  Gpus gpus;  // GPUs that still do, of all that were served

  bool holds() const { return differences.empty(); }
};

// Compares one file. Adds to `served` the GPUs that find code in it, and to `lost` those that would
// choose other code from the thinned file.
std::optional<ThinDifference> compare_thinned(const std::string& path, Bytes original, Bytes thin,
                                              Gpus& served, Gpus& lost, Allowance& memory);

// Does the same for a file that was left out.
std::optional<ThinDifference> compare_removed(const std::string& path, Bytes original, Gpus& served,
                                              Gpus& lost, Allowance& memory);

NAMES(ThinDifference, "missing", "added", "contents", "host-code", "device-code")

}  // namespace wheelscope
