// Versions of several projects that work together on a machine, or why there are none.
#pragma once

#include "answers/fit.h"

namespace wheelscope {

// Why versions of packages cannot be there at once.
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
  bool by_bytes = false;                 // its file was looked into
  FitVerdict verdict;                    // works, or depends
  std::string newest;                    // version on the index, where that is another one
  std::vector<std::string> required_by;  // package and requirement
};

struct SetAnswer {
  std::vector<std::string> asked;
  bool found = false;
  std::vector<ChosenPackage> packages;  // what was asked for first, then by name
  std::string command;
  std::vector<ClashLine> refused;          // by bytes, of sets that metadata alone allows
  std::vector<ClashLine> conflict;         // where there is no set; none can be left out
  std::vector<std::string> nearest_asked;  // what can be had instead
  std::vector<ChosenPackage> nearest;
  std::vector<std::string> why;  // lines for --why
  std::vector<std::string> notes;
  std::uint64_t read = 0, size = 0;  // bytes of the files that were looked into
  std::uint64_t received = 0;        // bytes that came over the network, for whatever question
};

}  // namespace wheelscope
