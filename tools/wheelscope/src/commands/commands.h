// The commands: each reads its files, prints its answer and returns an exit code.
#pragma once

#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "index/settings.h"
#include "report/style.h"
#include "source/bytes.h"

namespace wheelscope {

enum ExitCode { clean = 0, has_findings = 1, usage = 2, unreadable = 3 };

struct Options {
  std::vector<std::string> paths;
  bool json = false;
  bool sarif = false;  // check, atlas
  Style style;
  std::string policy, matrix;  // files
  bool by_size = false;        // show
  bool ptx = false, cubin = false, symbols = false;
  std::string output_folder;
  std::string why;              // env: a library's name; fit: a package's
  bool import = false;          // env: also import modules in Python
  std::string python, machine;  // an interpreter or environment; a file that `machine` wrote
  std::string with;             // fit: a requirement that will be installed first
  PipSettings from;             // fit, atlas: where files come from
  std::vector<std::string> requirement_files;  // fit
  std::vector<std::string> groups;             // fit: of a pyproject.toml
  std::string format, cuda, driver;            // fit
  bool keep = false;                           // fit
  bool deep = false;                           // fit: every byte
  int timeout = 15;                    // fit, atlas: seconds without an answer from a server
  std::vector<std::string> gpus;       // thin, fit
  std::string arch_list;               // thin
  std::optional<std::string> variant;  // thin
  bool keep_ptx = false, dry_run = false, compare = false;  // thin
  bool environment = false, write = false;                  // thin
  std::string save, undo;                                   // thin: folders for originals
  std::size_t releases = 2;                                 // atlas: of each project
  std::string torch = ">=2.0";                              // atlas: versions, or `newest`
};

// Answers go to `out`, errors about unreadable input to `err`.
struct Streams {
  std::ostream& out;
  std::ostream& err;
};

// Report an error; return the exit codes for unreadable input and for wrong usage.
int complain(const Error& error, Streams streams);
int bad_usage(const std::string& what, Streams streams);

int show(const Options& options, Streams streams);
int check(const Options& options, Streams streams);
int cover(const Options& options, Streams streams);
int link(const Options& options, Streams streams);
int diff(const Options& options, Streams streams);
int dump(const Options& options, Streams streams);
int machine(const Options& options, Streams streams);
int env(const Options& options, Streams streams);
int fit(const Options& options, Streams streams);
int thin(const Options& options, Streams streams);
int atlas(const Options& options, Streams streams);

// Reads the message from `in` if `paths` has no text.
int explain(const Options& options, Streams streams, std::istream& in);
int explain(const Options& options, Streams streams);  // from the standard input

}  // namespace wheelscope
