// Runs the short commands: files in, facts, one judge, one report out.
#include "commands/commands.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "answers/environment.h"
#include "answers/explain.h"
#include "commands/inputs.h"
#include "findings/findings.h"
#include "machine/distributions.h"
#include "machine/imports.h"
#include "machine/machine.h"
#include "report/json.h"
#include "report/text.h"
#include "source/system.h"
#include "text/text.h"

namespace wheelscope {
namespace {

int code_of(const Items& read) {
  const bool found = std::ranges::any_of(
      read.items, [](const Item& item) { return std::ranges::any_of(item.findings, matters); });
  return std::max<int>(read.code, found ? has_findings : clean);
}

int print_searches(const MachineFacts& machine, Disk& disk, const Options& options,
                   Streams streams) {
  const auto searches = searches_for(options.why, machine, disk);
  print("searches", searches, searches_text, options, streams);
  if (searches.empty())
    streams.err << "wheelscope: nothing that Python opens in this environment needs "
                << printable(options.why) << "\n";
  const bool lost =
      std::ranges::any_of(searches, [](const Search& search) { return search.found.empty(); });
  return searches.empty() || lost ? has_findings : clean;
}

// Imports each name in a process of its own, since an import may never return.
std::vector<ImportResult> import_for_real(const PythonFacts& python,
                                          const DistributionVerdict& verdict) {
  constexpr const char* program =
      "import importlib, sys, warnings\n"
      "warnings.simplefilter('ignore')\n"
      "sys.stdout, out = sys.stderr, sys.stdout\n"
      "try: importlib.import_module(sys.argv[1])\n"
      "except BaseException as error: print(type(error).__name__ + ':', error, file=out)\n";
  constexpr int seconds = 120;
  std::vector<ImportResult> results;
  for (const auto& name : import_names(verdict.distribution)) {
    const auto said = output_of({python.executable, "-c", program, name}, seconds);
    const auto text = said ? *said : said.error().what;
    results.push_back({name, std::string(trim(text.substr(0, text.find('\n'))))});
  }
  return results;
}

// Reads the end of a text: a log may be endless, and its last messages are the ones that matter.
std::string read_end(std::istream& in) {
  constexpr std::size_t most = 4 << 20;
  std::string text, block(64 << 10, '\0');
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(in.gcount()));
    if (text.size() > 2 * most) text.erase(0, text.size() - most);
  }
  return text;
}

}  // namespace

int show(const Options& options, Streams streams) {
  const auto read = read_items(options.paths, {}, options, streams);
  print_each("items", read.items, options.by_size ? sizes_text : show_text, options, streams);
  return code_of(read);
}

int check(const Options& options, Streams streams) {
  // PyPI's limit, which it raises for projects that ask.
  Policy policy{.size_limit_mb = 100, .levels = {{"size-limit", "warning"}}};
  if (!options.policy.empty()) {
    const auto text = read_text(options.policy);
    if (!text) return complain(text.error(), streams);
    auto parsed = parse_policy(*text);
    if (!parsed) return bad_usage(options.policy + ": " + parsed.error().what, streams);
    policy = std::move(*parsed);
  }
  auto read = read_items(options.paths, {.build_prefixes = policy.build_paths}, options, streams);
  for (auto& item : read.items) item.findings = check(item, policy);
  if (in_github_actions()) streams.err << annotations(read.items);
  if (options.sarif)
    streams.out << sarif_document(read.items);
  else
    print_each("items", read.items, check_text, options, streams);
  return code_of(read);
}

int cover(const Options& options, Streams streams) {
  const auto text = read_text(options.matrix);
  if (!text) return complain(text.error(), streams);
  const auto cells = parse_matrix(*text);
  if (!cells) return bad_usage(options.matrix + ": " + cells.error().what, streams);
  const auto read = read_items(options.paths, {}, options, streams);
  const auto verdicts = cover(read.items, *cells);
  print("cells", verdicts, cover_text, options, streams);
  const bool unserved =
      std::ranges::any_of(verdicts, [](const auto& verdict) { return verdict.wheel.empty(); });
  return std::max<int>(read.code, unserved ? has_findings : clean);
}

int link(const Options& options, Streams streams) {
  auto wheel = read_items({options.paths.front()}, {.symbols = true}, options, streams);
  const auto providers = read_items({options.paths.begin() + 1, options.paths.end()},
                                    {.symbols = true}, options, streams);
  if (wheel.items.size() != 1 || providers.code == unreadable) {
    if (wheel.items.size() > 1)
      complain({0, options.paths.front() + ": the first path must be one wheel or ELF file"},
               streams);
    return unreadable;
  }
  const auto report = link(wheel.items.front(), providers.items);
  if (options.json)
    streams.out << json_document("link", to_json(report));
  else
    streams.out << options.style.bold(wheel.items.front().facts.file) << "\n"
                << link_text(report, options.style);
  return report.missing.empty() && report.missing_libraries.empty() ? clean : has_findings;
}

int diff(const Options& options, Streams streams) {
  const auto read = read_items(options.paths, {.symbols = true}, options, streams);
  if (read.items.size() != 2)
    return read.code ? read.code : complain({0, "diff compares two wheels or files"}, streams);
  const auto changes = diff(read.items[0], read.items[1]);
  print("changes", changes, diff_text, options, streams);
  return changes.empty() ? clean : has_findings;
}

int machine(const Options& options, Streams streams) {
  if (asks_two_machines(options, streams)) return usage;
  const auto facts = asked_machine(options);
  if (!facts) return complain(facts.error(), streams);
  print("machine", *facts, machine_text, options, streams);
  return clean;
}

int env(const Options& options, Streams streams) {
  auto prefix = options.paths.empty() ? "" : options.paths.front();
  auto driver = DriverFiles::here;
  MachineFacts other;
  if (!options.machine.empty()) {
    auto asked = asked_machine(options);
    if (!asked) return complain(asked.error(), streams);
    other = std::move(*asked);
    driver = DriverFiles::elsewhere;
    if (prefix.empty() && other.python) prefix = other.python->prefix;
  }
  auto machine = read_machine(prefix);
  if (!machine) return complain(machine.error(), streams);
  if (driver == DriverFiles::elsewhere) {  // the environment is here, on a disk that both see
    machine->driver = other.driver;
    machine->gpus = other.gpus;
  }
  if (!machine->python) return complain({0, machine->notes.front()}, streams);
  for (const auto& folder : machine->python->site_packages) {
    std::error_code error;
    (void)std::filesystem::directory_iterator(folder, error);
    if (error) return complain({0, folder + ": " + error.message()}, streams);
  }
  Disk disk;
  if (!options.why.empty()) return print_searches(*machine, disk, options, streams);
  auto verdicts = judge_environment(*machine, disk, driver);
  if (options.import) {
    for (auto& verdict : verdicts) verdict.imported = import_for_real(*machine->python, verdict);
  }
  print("distributions", verdicts, environment_text, options, streams);
  const bool broken = std::ranges::any_of(verdicts, [](const DistributionVerdict& verdict) {
    return verdict.loads == Loads::no || !verdict.unmet.empty() || !verdict.unserved.empty() ||
           !verdict.files.empty() || verdict.fails_to_import();
  });
  return broken ? has_findings : clean;
}

int explain(const Options& options, Streams streams, std::istream& in) {
  if (asks_two_machines(options, streams)) return usage;
  const bool from_stdin =
      options.paths.empty() || (options.paths.size() == 1 && options.paths.front() == "-");
  const auto text = from_stdin ? read_end(in) : joined(options.paths, "\n");
  const auto symptoms = recognise(text);
  if (symptoms.empty()) {
    streams.err
        << "wheelscope: no known message in this text; to have one added, open an issue with "
           "the whole traceback, the command, and what `wheelscope machine --json` prints\n";
    if (options.json) streams.out << json_document("explanations", Json::array());
    return has_findings;
  }
  const auto machine = asked_machine(options);
  // A message can be explained without any machine, but a machine that was asked for must be
  // readable.
  const bool asked = !options.machine.empty() || !options.python.empty();
  if (!machine && asked) return complain(machine.error(), streams);
  Disk disk(options.machine.empty() ? "" : "/nonexistent");  // a saved machine's files are not here
  Asked about{.disk = disk, .assumed = !asked};
  if (machine && (asked || !is_of_another_machine(text, *machine))) about.machine = &*machine;
  if (about.machine && machine->python && options.machine.empty())
    about.installed = list_distributions(import_folders(machine->python->site_packages));
  print_each("explanations", explain_all(symptoms, about), explanation_text, options, streams);
  return clean;
}

int explain(const Options& options, Streams streams) {
  return explain(options, streams, std::cin);
}

}  // namespace wheelscope
