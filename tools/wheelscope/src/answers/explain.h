// Why something does not load or run, from the message that a user saw, with the facts of the
// machine where there is one.
#pragma once

#include "answers/symptom.h"
#include "facts/machine.h"
#include "loader/disk.h"

namespace wheelscope {

struct Explanation {
  Symptom symptom;
  std::string demangled;             // of the symbol; empty: there is none
  std::string provider;              // the library or program that should have it; empty: unknown
  std::string what;                  // what happened, in one sentence
  std::vector<std::string> because;  // what is known of it, the strongest first
  std::vector<std::string> mend;     // what to do; each is one way
};

// `machine` may be none; `disk` is asked only for files of the machine that it is about.
Explanation explain(const Symptom& symptom, const MachineFacts* machine, Disk& disk);

// The part of it that is about libraries: symbols, versions, files that are not found.
void explain_undefined_symbol(const MachineFacts* machine, Disk& disk, Explanation& explanation);
void explain_missing_version(const MachineFacts* machine, Disk& disk, Explanation& explanation);
void explain_missing_library(const MachineFacts* machine, Explanation& explanation);

}  // namespace wheelscope
