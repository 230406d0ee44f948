// What shells and `man` are told of the command line, made from its definition.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace wheelscope {

// A script for bash, zsh or fish that completes commands, options and files.
std::string completion_script(const CLI::App& app, const std::string& shell);

// A page for man, section 1.
std::string man_page(const CLI::App& app);

}  // namespace wheelscope
