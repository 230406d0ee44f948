// What the command line names: files, and the machine with its own libraries.
#pragma once

#include <string>

#include "answers/fit.h"
#include "commands/commands.h"
#include "facts/machine.h"
#include "findings/findings.h"
#include "loader/disk.h"
#include "report/json.h"

namespace wheelscope {

// Whether texts from the file are escaped, for a terminal.
enum class Texts { as_they_are, printable };

// A wheel, or a file with machine code, by its first bytes.
Result<Item> read_item(const std::string& path, const ScanOptions& options,
                       Texts texts = Texts::as_they_are);

// Every file that the paths stand for, read; what cannot be is complained about and the rest still
// read.
struct Items {
  std::vector<Item> items;
  int code = clean;
};

Items read_items(const std::vector<std::string>& paths, const ScanOptions& scan,
                 const Options& options, Streams streams);

// Prints what there is to say of each: one document, or texts one after the other.
template <class List, class ToText>
void print_each(const char* key, const List& list, const ToText& to_text, const Options& options,
                Streams streams) {
  if (options.json) streams.out << json_document(key, to_json(list));
  for (const auto& one : list) {
    if (!options.json) streams.out << to_text(one, options.style);
  }
}

// The machine that is asked about: this one, with the Python of --python, or that of --machine.
Result<MachineFacts> asked_machine(const Options& options);

// Whether both were given; says so.
bool asks_two_machines(const Options& options, Streams streams);

// What this machine's files say: the system's libraries, Python's symbols, torch's.
// Files are read at the first question, by one thread at a time. `torch`: the installed one counts.
Lookups lookups_on(const MachineFacts& machine, Disk& disk, bool torch);

}  // namespace wheelscope
