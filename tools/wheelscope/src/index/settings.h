// Which package index installers here are told to use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "source/bytes.h"

namespace wheelscope {

// What pip and uv can be told about where files come from.
struct PipSettings {
  std::string index;
  std::vector<std::string> extra, find_links;
  bool no_index = false, prereleases = false;
  std::string proxy;
};

// What is given on the command line goes before pip's variables and files, those before uv's; else
// PyPI. `environment` is the folder of a virtual environment, whose pip.conf counts; or empty.
PipSettings configured_settings(PipSettings given, const std::string& environment);

// The addresses to ask: indexes, the main one first, and pages of links (see links_page).
std::vector<std::string> addresses_of(const PipSettings& settings);

// The form in which find_candidates() takes a page of links or a folder of files.
std::string links_page(const std::string& address);

PipSettings parse_pip_conf(std::string_view text);

// A uv.toml, or the table tool.uv of a pyproject.toml. What cannot be read is an error with its
// line. Indexes that are marked `explicit` serve only packages that are pinned to them: left out.
Result<PipSettings> parse_uv_toml(std::string_view text, bool pyproject = false);

// The lines of a requirements file, `-r` in it followed: its options go to `settings`. What fit
// cannot judge (-e, addresses of repositories) becomes notes.
Result<std::vector<std::string>> read_requirements(const std::string& path, PipSettings& settings,
                                                   std::vector<std::string>& notes, int depth = 0);

// The requirements that a pyproject.toml lists: those of [project].dependencies.
Result<std::vector<std::string>> project_dependencies(std::string_view text);

// Those of a group in [dependency-groups] (PEP 735), with the groups that it includes.
Result<std::vector<std::string>> dependency_group(std::string_view text, const std::string& group);

}  // namespace wheelscope
