// `wheelscope machine`: this machine, or one that was saved.
#include "machine/machine.h"

#include "commands/asked_machine.h"
#include "machine/saved.h"
#include "report/json.h"
#include "report/text.h"
#include "source/files.h"

namespace wheelscope {

bool asks_two_machines(const Options& options, Streams streams) {
  if (options.machine.empty() || options.python.empty()) return false;
  streams.err << "wheelscope: --python asks this machine, --machine another: give one of them\n";
  return true;
}

Result<MachineFacts> asked_machine(const Options& options) {
  if (options.machine.empty()) return read_machine(options.python);
  const auto text = TRY(read_text(options.machine));
  auto machine = parse_machine(text);
  if (!machine) return std::unexpected(Error{0, options.machine + ": " + machine.error().what});
  return machine;
}

int machine(const Options& options, Streams streams) {
  if (asks_two_machines(options, streams)) return usage;
  const auto facts = asked_machine(options);
  if (!facts) return complain(facts.error(), streams);
  if (options.json)
    streams.out << json_document("machine", to_json(*facts));
  else
    streams.out << machine_text(*facts, options.style);
  return clean;
}

}  // namespace wheelscope
