// Runs the commands: files in, facts, one judge, one report out.
#include "commands/commands.h"

#include <algorithm>
#include <cstdlib>

#include "commands/inputs.h"
#include "findings/policy.h"
#include "report/json.h"
#include "report/text.h"
#include "source/files.h"

namespace wheelscope {
namespace {

int report_items(const Items& read, const Options& options, Streams streams,
                 std::string (*text)(const Item&, const Style&)) {
  auto code = read.code;
  auto json = Json::array();
  for (const auto& item : read.items) {
    if (std::ranges::any_of(item.findings, matters)) code = std::max<int>(code, has_findings);
    if (options.json)
      json.push_back(to_json(item));
    else
      streams.out << text(item, options.style);
  }
  if (options.json) streams.out << json_document("items", std::move(json));
  return code;
}

}  // namespace

int show(const Options& options, Streams streams) {
  return report_items(read_items(options.paths, {}, options, streams), options, streams,
                      options.by_size ? sizes_text : show_text);
}

int check(const Options& options, Streams streams) {
  // PyPI's limit, which it raises for projects that ask.
  Policy policy{.size_limit_mb = 100, .levels = {{"size-limit", "warning"}}};
  if (!options.policy.empty()) {
    const auto text = read_text(options.policy);
    if (!text) return complain(text.error(), streams);
    auto parsed = parse_policy(*text);
    if (!parsed) {
      streams.err << "wheelscope: " << options.policy << ": " << parsed.error().what << "\n";
      return usage;
    }
    policy = std::move(*parsed);
  }
  auto read = read_items(options.paths, {.build_prefixes = policy.build_paths}, options, streams);
  for (auto& item : read.items) item.findings = check(item, policy);
  if (in_github_actions()) streams.err << annotations(read.items);
  if (!options.sarif) return report_items(read, options, streams, check_text);
  streams.out << sarif_document(read.items);
  const bool found = std::ranges::any_of(
      read.items, [](const Item& item) { return std::ranges::any_of(item.findings, matters); });
  return std::max<int>(read.code, found ? has_findings : clean);
}

int cover(const Options& options, Streams streams) {
  const auto text = read_text(options.matrix);
  if (!text) return complain(text.error(), streams);
  const auto cells = parse_matrix(*text);
  if (!cells) {
    streams.err << "wheelscope: " << options.matrix << ": " << cells.error().what << "\n";
    return usage;
  }
  const auto read = read_items(options.paths, {}, options, streams);
  const auto verdicts = cover(read.items, *cells);
  streams.out << (options.json ? json_document("cells", to_json(verdicts))
                               : cover_text(verdicts, options.style));
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
  streams.out << (options.json ? json_document("changes", to_json(changes))
                               : diff_text(changes, options.style));
  return changes.empty() ? clean : has_findings;
}

int machine(const Options& options, Streams streams) {
  if (asks_two_machines(options, streams)) return usage;
  const auto facts = asked_machine(options);
  if (!facts) return complain(facts.error(), streams);
  streams.out << (options.json ? json_document("machine", to_json(*facts))
                               : machine_text(*facts, options.style));
  return clean;
}

}  // namespace wheelscope
