// `wheelscope fit`: which file of a project works on a machine, and the command that installs it.
#include <algorithm>

#include "commands/fitter.h"
#include "commands/inputs.h"
#include "index/settings.h"
#include "packaging/claims.h"
#include "report/json.h"
#include "report/text.h"
#include "source/system.h"

namespace wheelscope {
namespace {

// Returns a word for a shell's command, quoted if necessary.
std::string shell_word(const std::string& text) {
  if (text.find_first_of(" \t'\"$`\\&|;<>()*?[]#~!{}") == text.npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

Result<std::vector<std::string>> from_pyproject(
    const std::string& path,
    const std::function<Result<std::vector<std::string>>(std::string_view)>& read) {
  auto listed = read(TRY(read_text(path)));
  if (!listed) return fail(listed.error().offset, path + ": " + listed.error().what);
  return listed;
}

}  // namespace

std::string pip_install(const Options& options, const MachineFacts& machine) {
  return options.python.empty() ? "pip install"
                                : shell_word(machine.python->executable) + " -m pip install";
}

std::string index_words(const Options& options) {
  std::string words;
  auto add = [&](const char* name, const std::string& value) {
    words += std::string(" ") + name + " " + shell_word(is_url(value) ? shown_url(value) : value);
  };
  if (!options.index.empty()) add("--index-url", options.index);
  for (const auto& url : options.extra_indexes) add("--extra-index-url", url);
  for (const auto& place : options.find_links) add("--find-links", place);
  return words + (options.no_index ? " --no-index" : "") + (options.prereleases ? " --pre" : "");
}

void Fitter::choose(FitAnswer& answer) {
  if (const auto* best = best_of(answer.verdicts)) {
    answer.take = best->file;
    answer.command = pip_install(options_, machine_) +
                     (options_.with.empty() ? "" : " " + shell_word(options_.with)) + " " +
                     what_to_install(answer, *best);
    if (!is_url(answer.asked)) answer.command += index_words(options_);
  } else if (const auto* nearest = nearest_of(answer.verdicts)) {
    answer.nearest = nearest->file;
    answer.obstacle = nearest->reason;
  }
}

std::string Fitter::what_to_install(const FitAnswer& answer, const FitVerdict& best) const {
  const auto address = addresses_.find(best.file);
  if (address == addresses_.end()) return answer.asked;
  const auto claims = parse_wheel_name(best.file);
  for (const auto& verdict : answer.verdicts) {
    if (&verdict == &best) break;
    const auto other = parse_wheel_name(verdict.file);
    if (claims && other && other->version == claims->version) return address->second;
  }
  return claims ? parse_requirement(answer.asked).name + "==" + claims->version : answer.asked;
}

int fit(const Options& given, Streams streams) {
  auto options = given;
  PipSettings from_files;
  std::vector<std::string> notes;
  for (const auto& file : options.requirement_files) {
    const bool pyproject = base_name(file) == "pyproject.toml";
    const auto listed = pyproject ? from_pyproject(file, project_dependencies)
                                  : read_requirements(file, from_files, notes);
    if (!listed) return complain(listed.error(), streams);
    std::ranges::copy(*listed, std::back_inserter(options.paths));
  }
  for (const auto& group : options.groups) {
    const auto listed = from_pyproject(
        "pyproject.toml", [&](std::string_view text) { return dependency_group(text, group); });
    if (!listed) return complain(listed.error(), streams);
    std::ranges::copy(*listed, std::back_inserter(options.paths));
  }
  for (const auto& note : notes) streams.err << "wheelscope: " << printable(note) << "\n";
  if (options.index.empty()) options.index = from_files.index;
  std::ranges::copy(from_files.extra, std::back_inserter(options.extra_indexes));
  std::ranges::copy(from_files.find_links, std::back_inserter(options.find_links));
  options.no_index |= from_files.no_index;
  options.prereleases |= from_files.prereleases;
  if (options.paths.empty()) {
    streams.err << "wheelscope: fit needs a NAME, a wheel, an address, or -r FILE\n";
    return usage;
  }
  if (asks_two_machines(options, streams)) return usage;
  auto machine = asked_machine(options);
  if (!machine) return complain(machine.error(), streams);
  if (!machine->python)
    return complain(
        {0, machine->notes.empty() ? "the machine has no Python" : machine->notes.front()},
        streams);
  if (!options.driver.empty()) machine->driver = options.driver;
  if (!options.gpus.empty()) machine->gpus.clear();
  for (const auto& gpu : options.gpus) machine->gpus.push_back({"a GPU of " + gpu, gpu});
  if (asks_for_set(options)) return fit_set(options, streams, std::move(*machine));
  Fitter fitter(options, streams, *machine);
  if (!options.with.empty() && !fitter.assume_torch()) return unreadable;
  auto json = Json::array();
  bool all_work = true;
  for (const auto& asked : options.paths) {
    const auto answer = fitter.answer(asked);
    all_work &= !answer.take.empty();
    if (options.json)
      json.push_back(to_json(answer));
    else
      streams.out << fit_text(answer, options.style);
  }
  if (options.json) streams.out << json_document("fit", std::move(json));
  if (all_work) return clean;
  return fitter.had_problems() ? unreadable : has_findings;
}

}  // namespace wheelscope
