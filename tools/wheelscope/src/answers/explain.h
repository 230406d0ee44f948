// Explains why something does not load or run, from the message that a user saw, with the facts of
// the machine if there is one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "facts/machine.h"
#include "loader/disk.h"
#include "machine/distributions.h"

namespace wheelscope {

// The messages of installers, loaders, Python, torch and CUDA that say why something does not work,
// found in a text: a line, or a whole log. data/explain.toml lists them.

// The kinds that the program itself speaks of; all others are keys of data/explain.toml.
namespace SymptomKind {
inline constexpr const char* undefined_symbol = "undefined-symbol";
inline constexpr const char* missing_version = "missing-version";
inline constexpr const char* missing_library = "missing-library";
inline constexpr const char* torch_needs = "torch-needs-library";
inline constexpr const char* other_machine = "other-machine";
inline constexpr const char* damaged_file = "damaged-file";
inline constexpr const char* python_abi = "python-abi";
inline constexpr const char* numpy_abi = "numpy-abi";
}  // namespace SymptomKind

// The contents of a message; a text that it does not have is empty.
struct Symptom {
  std::string kind;
  std::string message;  // the lines that say it
  std::string library;  // the file that does not load
  std::string needs;    // the library that it needs: libcudart.so.12, /lib64/libc.so.6
  std::string symbol, version;
  std::map<std::string, std::string> parts;  // what else its pattern names
  std::shared_ptr<const std::string> text;   // the whole text, as patterns are compared with it

  std::string part(const std::string& name) const;
  void set(const std::string& name, std::string text);
};

// A text that a message is recognised by. `{name}` stands for a part, `{name!}` between texts for a
// part without blanks, `*` for anything short, and `{a|b}` in the file makes a pattern for each of
// its texts; `{name:}` at the end is the rest of the line; blanks, line ends, letter case and the
// style of quotes do not matter. Matching takes time in proportion to the text, whatever the text
// is: nothing is ever tried again.
struct Pattern {
  std::vector<std::string> literals;  // at least one, in lower case
  std::vector<std::string> between;   // before each literal and after the last: "", "*" or a name
  bool capital = false;               // the first literal begins with a capital letter
};

// Returns a text in lower case and with one kind of quotes, as patterns and texts are compared.
std::string comparable(std::string_view text);

// One entry of data/explain.toml; the file's head describes the fields.
struct MessageEntry {
  std::string kind;
  std::vector<Pattern> find;
  std::string what, whose, link, message;
  std::vector<std::string> because, ask, fix, windows;
  int weak = 0;           // entries count only where no entry with a smaller number matches
  bool released = false;  // counts only for names that data/attributes.csv has
};
inline constexpr int weakest = 4;
const std::vector<MessageEntry>& message_entries();  // in the order of the file
const MessageEntry& entry_of(const std::string& kind);
const MessageEntry& missing_entry(const std::string& key);  // of data/missing.toml

// Returns each symptom once, in the order of the text. A part of the text belongs to the first
// entry that matches.
std::vector<Symptom> recognise(std::string_view text);

// What a whole text, in lower case, tells about where it comes from; each symptom gets these parts:
// its_python and its_pip (versions), windows, macos and linux (the system), sudo and musl (not
// empty if the text names them).
std::map<std::string, std::string> facts_of_text(std::string_view lowered);

// Returns an advice without the parts that are for other systems than this one (windows, macos,
// linux, or musl for a Linux with musl): those that begin with the name of a system, or with the
// command of one.
std::string for_system(std::string_view line, std::string_view system);

// True for a text, in lower case, that only programs on Windows print.
bool is_of_windows(std::string_view lowered);

// True if a text was plainly not printed on this machine: it is of another system, processor or
// Python, or names folders of users or packages that are not here.
bool is_of_another_machine(std::string_view text, const MachineFacts& machine);

struct Explanation {
  Symptom symptom;
  std::string demangled;             // of the symbol; empty: there is none
  std::string owner;                 // the library or program that should have it; empty: unknown
  std::string what;                  // what happened, in one sentence
  std::vector<std::string> because;  // what is known of it, the strongest first
  std::vector<std::string> fixes;    // what to do; each is one way
  std::string link;                  // a public report of it; empty: none

  void say(std::string why) { because.push_back(std::move(why)); }
  void advise(std::string fix) { fixes.push_back(std::move(fix)); }
};

// The machine that a message is explained for.
struct Asked {
  const MachineFacts* machine = nullptr;  // may be none
  Disk& disk;                             // is asked only for files of that machine
  std::vector<Distribution> installed = {};
  bool assumed = false;  // nobody named it: another Python may have been meant
};
Explanation explain(const Symptom& symptom, const Asked& asked);
Explanation explain(const Symptom& symptom, const MachineFacts* machine, Disk& disk);

// Explains all symptoms of a text. Those that differ in one name alone share an explanation, which
// lists the names.
std::vector<Explanation> explain_all(const std::vector<Symptom>& symptoms, const Asked& asked);

// Adds the sentences of an entry of data/missing.toml, with these parts in their braces.
void tell(const std::string& key, Explanation& explanation,
          const std::map<std::string, std::string>& parts = {});

// The questions about libraries: symbols, versions, files that are not found. They may change the
// parts of the symptom, which the sentences of its entry are made of.
void ask_symbol(const Asked& asked, Explanation& explanation);
void ask_version(const Asked& asked, Explanation& explanation);
void ask_library(const Asked& asked, Explanation& explanation);

// Whose a module, header, library or program is, and what to install: sets the parts of, pip, apt
// and brew, where data/providers.csv knows it.
void ask_provider(const Asked& asked, Explanation& explanation);

// Which release of a distribution brought or removed a name of a module (parts name and module, or
// path for both), by data/attributes.csv: sets the parts distribution, brought, removed and change.
// Returns false if the table does not have it.
bool set_release(Symptom& symptom);
void ask_release(const Asked& asked, Explanation& explanation);

// Which packages are wanted in two ways by the lines of a resolver (part rest...).
void ask_conflict(const Asked& asked, Explanation& explanation);

// What the sizes of an "out of memory" say: too much was asked for, another process has the memory,
// or it is there and not in one piece.
void ask_memory(const Asked& asked, Explanation& explanation);

}  // namespace wheelscope
