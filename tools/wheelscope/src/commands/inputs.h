// Reads what the command line names: files, and machines with their libraries.
#pragma once

#include <string>

#include "answers/fit.h"
#include "commands/commands.h"
#include "facts/machine.h"
#include "findings/findings.h"
#include "loader/disk.h"
#include "report/json.h"

namespace wheelscope {

// `printable`: texts from the file are escaped for a terminal.
enum class Texts { as_they_are, printable };

// Reads a wheel or a file with machine code; the first bytes tell which it is.
Result<Item> read_item(const std::string& path, const ScanOptions& options,
                       Texts texts = Texts::as_they_are);

// The files that the paths stand for. One that cannot be read is reported, and the others are still
// read.
struct Items {
  std::vector<Item> items;
  int code = clean;
};

Items read_items(const std::vector<std::string>& paths, const ScanOptions& scan,
                 const Options& options, Streams streams);

// Prints an answer as JSON or as text.
template <class Answer, class ToText>
void print(const char* key, const Answer& answer, const ToText& to_text, const Options& options,
           Streams streams) {
  streams.out << (options.json ? json_document(key, to_json(answer))
                               : to_text(answer, options.style));
}

// Prints an answer for each element: one JSON document, or texts one after the other.
template <class List, class ToText>
void print_each(const char* key, const List& list, const ToText& to_text, const Options& options,
                Streams streams) {
  if (options.json) streams.out << json_document(key, to_json(list));
  for (const auto& one : list) {
    if (!options.json) streams.out << to_text(one, options.style);
  }
}

// Returns the machine that is asked about: this one, with the Python of --python, or that of
// --machine.
Result<MachineFacts> asked_machine(const Options& options);

// True, with a message, if both --python and --machine were given.
bool asks_two_machines(const Options& options, Streams streams);

// Looks things up in this machine's files: the system's libraries, Python's symbols, torch's. Files
// are read at the first question, by one thread at a time. `torch`: whether the installed torch
// counts.
Lookups lookups_on(const MachineFacts& machine, Disk& disk, bool torch);

}  // namespace wheelscope
