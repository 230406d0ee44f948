// Finds the package index that installers here are configured to use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "packaging/requirement.h"
#include "source/bytes.h"

namespace wheelscope {

// Settings of pip and uv about where files come from, and which of them count.
struct PipSettings {
  std::string index;
  std::vector<std::string> extra;        // further indexes
  std::vector<std::string> find_links;   // pages of links, and folders
  std::vector<std::string> constraints;  // files
  std::vector<Requirement> limits;       // what these say, once read_limits() was called
  bool no_index = false, prereleases = false;
  std::string proxy;
};

// Merges settings by precedence: the command line, pip's variables and files, uv's variables and
// files, PyPI. `environment` is the folder of a virtual environment, whose pip.conf counts, or
// empty.
PipSettings configured_settings(PipSettings given, const std::string& environment);

// Returns the addresses of the indexes to ask, the main one first.
std::vector<std::string> indexes_of(const PipSettings& settings);

// Reads the files of constraints, and keeps the lines whose markers hold.
Result<void> read_limits(PipSettings& settings, const MarkerEnvironment& environment);

PipSettings parse_pip_conf(std::string_view text);

// Parses a uv.toml, or the table tool.uv of a pyproject.toml. An error has the line number. Skips
// indexes marked `explicit`, which serve only packages that are pinned to them.
Result<PipSettings> parse_uv_toml(std::string_view text, bool pyproject = false);

// Returns the lines of a requirements file, following `-r`. Options go to `settings`. Lines that
// fit cannot judge (-e, addresses of repositories) become notes.
Result<std::vector<std::string>> read_requirements(const std::string& path, PipSettings& settings,
                                                   std::vector<std::string>& notes, int depth = 0);

// Returns the requirements of a pyproject.toml: [project].dependencies.
Result<std::vector<std::string>> project_dependencies(std::string_view text);

// Returns those of a group in [dependency-groups] (PEP 735), with the groups that it includes.
Result<std::vector<std::string>> dependency_group(std::string_view text, const std::string& group);

}  // namespace wheelscope
