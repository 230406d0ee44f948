// `wheelscope env`: whether what is installed in an environment would load.
#include <algorithm>

#include "answers/environment.h"
#include "commands/inputs.h"
#include "machine/imports.h"
#include "machine/machine.h"
#include "report/json.h"
#include "report/text.h"
#include "source/program.h"
#include "text/text.h"

namespace wheelscope {
namespace {

int print_searches(const MachineFacts& machine, Disk& disk, const Options& options,
                   Streams streams) {
  const auto searches = searches_for(options.why, machine, disk);
  streams.out << (options.json ? json_document("searches", to_json(searches))
                               : searches_text(searches, options.style));
  if (searches.empty())
    streams.err << "wheelscope: nothing that Python opens in this environment needs "
                << printable(options.why) << "\n";
  const bool lost =
      std::ranges::any_of(searches, [](const Search& search) { return search.found.empty(); });
  return searches.empty() || lost ? has_findings : clean;
}

// In one process for each name, which may not come back.
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

}  // namespace

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
  Disk disk;
  if (!options.why.empty()) return print_searches(*machine, disk, options, streams);
  auto verdicts = judge_environment(*machine, disk, driver);
  if (options.import) {
    for (auto& verdict : verdicts) verdict.imported = import_for_real(*machine->python, verdict);
  }
  streams.out << (options.json ? json_document("distributions", to_json(verdicts))
                               : environment_text(verdicts, options.style));
  const bool broken = std::ranges::any_of(verdicts, [](const DistributionVerdict& verdict) {
    return verdict.loads == Loads::no || !verdict.unmet.empty() || !verdict.unserved.empty() ||
           !verdict.files.empty() || verdict.fails_to_import();
  });
  return broken ? has_findings : clean;
}

}  // namespace wheelscope
