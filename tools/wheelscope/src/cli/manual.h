// Makes shell completions and a manual page from the definition of the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace wheelscope {

// Returns a script for bash, zsh or fish that completes commands, options and files.
std::string completion_script(const CLI::App& app, const std::string& shell);

// Returns a page for man, section 1.
std::string man_page(const CLI::App& app);

}  // namespace wheelscope
