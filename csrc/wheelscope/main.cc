// The command line: parses options, reads files, runs one command, prints.
#include <CLI/CLI.hpp>
#include <iostream>

#include "dump.h"
#include "input.h"
#include "json_report.h"

namespace wheelscope {
namespace {

enum ExitCode { clean = 0, has_findings = 1, usage = 2, unreadable = 3 };

struct Options {
  std::vector<std::string> paths;
  bool json = false, ptx = false, cubin = false, symbols = false;
  std::string output;
};

int complain(const Error& error) {
  std::cerr << "wheelscope: " << error.what << "\n";
  return unreadable;
}

Result<std::vector<std::string>> expand(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const auto& path : paths) {
    for (auto& file : TRY(expand_path(path))) files.push_back(std::move(file));
  }
  return files;
}

int show(const Options& options) {
  const auto files = expand(options.paths);
  if (!files) return complain(files.error());
  int code = clean;
  auto items = Json::array();
  for (const auto& file : *files) {
    const auto item = read_item(file, {});
    if (!item) {
      code = complain(item.error());
      continue;
    }
    if (!item->findings.empty()) code = std::max<int>(code, has_findings);
    items.push_back(to_json(*item));
  }
  std::cout << json_document("items", std::move(items));
  return code;
}

int dump_symbols(const Options& options) {
  auto items = Json::array();
  for (const auto& path : options.paths) {
    const auto item = read_item(path, {.symbols = true});
    if (!item) return complain(item.error());
    if (options.json) items.push_back(symbols_json(*item));
    else std::cout << symbols_text(*item);
  }
  if (options.json) std::cout << json_document("items", std::move(items));
  return clean;
}

}  // namespace
}  // namespace wheelscope

int main(int argc, char** argv) {
  using namespace wheelscope;
  CLI::App app("Says where a wheel will run, why, and whether it may be released.");
  Options options;
  app.require_subcommand(1);
  auto* show_command = app.add_subcommand("show", "Facts and verdicts");
  show_command->add_flag("--json", options.json);
  show_command->add_option("PATH", options.paths)->required();
  auto* dump_command = app.add_subcommand("dump", "Symbols, PTX or cubins");
  dump_command->add_flag("--symbols", options.symbols);
  dump_command->add_flag("--json", options.json);
  dump_command->add_option("PATH", options.paths)->required();
  CLI11_PARSE(app, argc, argv);
  if (show_command->parsed()) return show(options);
  return dump_symbols(options);
}
