// `wheelscope explain`: what a message means on this machine, or on one that was saved.
#include "answers/explain.h"

#include <iostream>
#include <iterator>

#include "commands/inputs.h"
#include "report/json.h"
#include "report/text.h"

namespace wheelscope {
namespace {

// A log may be endless; its last messages are the ones that matter.
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
  // A message can be explained without a machine, but not without the one that was asked for.
  const bool asked = !options.machine.empty() || !options.python.empty();
  if (!machine && asked) return complain(machine.error(), streams);
  Disk disk(options.machine.empty() ? "" : "/nonexistent");  // a saved machine's files are not here
  Asked about{.machine = machine ? &*machine : nullptr, .disk = disk};
  if (machine && machine->python && options.machine.empty())
    about.installed = list_distributions(machine->python->site_packages);
  auto json = Json::array();
  for (const auto& symptom : symptoms) {
    const auto explanation = explain(symptom, about);
    if (options.json)
      json.push_back(to_json(explanation));
    else
      streams.out << explanation_text(explanation, options.style);
  }
  if (options.json) streams.out << json_document("explanations", std::move(json));
  return clean;
}

int explain(const Options& options, Streams streams) {
  return explain(options, streams, std::cin);
}

}  // namespace wheelscope
