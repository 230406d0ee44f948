// Judges whether a wheel would work on a machine. Besides what `cover` asks, it asks for the
// machine's C library, its libraries, its driver and its GPUs.
#pragma once

#include <functional>
#include <span>

#include "answers/cover.h"
#include "answers/wheel_imports.h"
#include "facts/facts.h"
#include "facts/machine.h"
#include "text/text.h"

namespace wheelscope {

// Whether something that a wheel needs and does not have will be present.
enum class Brought { yes, no, unknown };

// A NumPy that a wheel may meet. `because`: what requires it, where the wheel itself would take
// another.
struct MetNumpy {
  std::string version;  // empty: none
  std::string because = {};
};

// Answers from the machine's own files, if they are available (not those of a saved machine, nor of
// a torch that is still to be installed), and from the wheels that a wheel requires. An empty
// function means unknown.
struct Lookups {
  std::function<const LibraryFacts*(const std::string& name)> system_library;
  std::function<bool(const std::string&)> torch_has;
  std::function<bool(const std::string&)> python_has;
  std::function<Brought(const std::string& library)> required_wheels;
  // One of these will be installed; empty: unknown.
  std::function<std::vector<MetNumpy>()> numpy;
  std::function<const WheelImports*()> imports;  // of the wheel itself; null: not known
  std::function<Refusal()> refusal;              // of the wheel's own Python code
  bool same_cuda_as_index = true;                // the torch here is the index's build
};

// From best to worst. `depends`: on something that files do not tell, or that someone can bring.
enum class Fits { works, depends, fails };

// What stands in the way, in the order in which users meet it: the later, the nearer the wheel
// came.
enum class Obstacle { none, unreadable, system, python, torch, numpy, library, cuda, driver, gpu };

struct FitVerdict {
  std::string file;
  Fits fits = Fits::works;
  Obstacle obstacle = Obstacle::none;
  Reason reason;                     // why it fails, or what it depends on
  std::vector<std::string> notes;    // what someone should know beside that
  bool in_part = false;              // judged without its device code
  std::uint64_t size = 0, read = 0;  // bytes of the file, and how many were read
};

// The verdict on a file that could not be read.
inline FitVerdict unread(std::string file, std::string why) {
  return {.file = std::move(file),
          .fits = Fits::depends,
          .obstacle = Obstacle::unreadable,
          .reason = {.why = Why::not_read, .what = std::move(why)}};
}

// The answer for a project or file: the verdicts, and which file to take.
struct FitAnswer {
  std::string asked;                 // as the user wrote it
  std::vector<FitVerdict> verdicts;  // in the order in which an installer prefers them
  std::uint64_t not_judged = 0;      // files of other versions
  std::string take, command;         // empty: none works
  std::string nearest;               // if none works
  Reason obstacle;                   // of the nearest
  std::string sdist;                 // what remains if there is no wheel for this machine
  std::vector<std::string> notes;
};

// The verdict to take: the first that works. Null: none.
const FitVerdict* best_of(std::span<const FitVerdict> verdicts);

// Returns the nearest verdict: one that depends on something, else the last obstacle; null if no
// files.
const FitVerdict* nearest_of(std::span<const FitVerdict> verdicts);

// Judges by name and tags alone.
FitVerdict fit_by_name(const WheelClaims& claims, const std::string& file,
                       const MachineFacts& machine);

// `wheel` must have been read with its symbols.
FitVerdict fit(const Item& wheel, const MachineFacts& machine, const Lookups& lookups);

NAMES(Fits, "works", "depends", "fails")
NAMES(Obstacle, "none", "unreadable", "system", "python", "torch", "numpy", "library", "cuda",
      "driver", "gpu")

// Why versions of packages cannot be installed together.
struct ClashReason {
  enum class Kind { asked, required, unavailable, judged };
  Kind kind = Kind::required;
  std::string text = {};  // the requirement as it is written, or what is wrong
  Reason reason = {};     // by the bytes of the file, or by its name
};

// One line of an explanation: `who` in these versions, and what it clashes with.
struct ClashLine {
  std::string who, versions;  // empty: what was asked for
  std::string other, other_versions;
  ClashReason because;
};

struct ChosenPackage {
  std::string name, version;
  bool asked = false;
  std::string file, url, sha256;
  std::optional<std::uint64_t> size;
  bool is_source = false;
  bool by_bytes = false;                 // its file was examined
  FitVerdict judged;                     // works, or depends
  std::string newest;                    // version on the index, where that is another one
  std::vector<std::string> required_by;  // package and requirement
};

struct SetAnswer {
  std::vector<std::string> asked;
  bool found = false;
  std::vector<ChosenPackage> packages;  // what was asked for first, then by name
  std::string command;
  std::vector<ClashLine> refused;          // by bytes, of sets that metadata alone allows
  std::vector<ClashLine> conflict;         // if there is no set; none can be left out
  std::vector<std::string> nearest_asked;  // what can be had instead
  std::vector<ChosenPackage> nearest;
  std::vector<std::string> why;  // lines for --why
  std::vector<std::string> notes;
  std::uint64_t read = 0, size = 0;  // bytes of the examined files
  std::uint64_t received = 0;        // bytes from the network, for any question
};

}  // namespace wheelscope
