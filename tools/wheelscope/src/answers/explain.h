// Why something does not load or run, from the message that a user saw, with the facts of the
// machine where there is one.
#pragma once

#include "answers/symptom.h"
#include "facts/machine.h"
#include "loader/disk.h"
#include "machine/distributions.h"

namespace wheelscope {

struct Explanation {
  Symptom symptom;
  std::string demangled;             // of the symbol; empty: there is none
  std::string provider;              // the library or program that should have it; empty: unknown
  std::string what;                  // what happened, in one sentence
  std::vector<std::string> because;  // what is known of it, the strongest first
  std::vector<std::string> fixes;    // what to do; each is one way
  std::string link;                  // a public report of it; empty: none
};

// The machine that a message is explained for.
struct Asked {
  const MachineFacts* machine = nullptr;  // may be none
  Disk& disk;                             // is asked only for files of that machine
  std::vector<Distribution> installed = {};
};
Explanation explain(const Symptom& symptom, const Asked& asked);
Explanation explain(const Symptom& symptom, const MachineFacts* machine, Disk& disk);

// Whether entries of data/explain.toml can ask this of the machine.
bool is_question(const std::string& name);

// The questions about libraries: symbols, versions, files that are not found. They may change the
// parts of the symptom, which the sentences of its entry are made of.
void ask_symbol(const Asked& asked, Explanation& explanation);
void ask_version(const Asked& asked, Explanation& explanation);
void ask_library(const Asked& asked, Explanation& explanation);

}  // namespace wheelscope
