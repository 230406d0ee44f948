// `wheelscope fit`: which file of a project works on a machine, and the command that installs it.
#include <algorithm>

#include "answers/thin.h"
#include "commands/fitter.h"
#include "commands/inputs.h"
#include "index/settings.h"
#include "machine/distributions.h"
#include "packaging/claims.h"
#include "report/json.h"
#include "report/text.h"
#include "source/system.h"

namespace wheelscope {
namespace {

using namespace std::string_view_literals;

Result<std::vector<std::string>> from_pyproject(
    const std::string& path,
    const std::function<Result<std::vector<std::string>>(std::string_view)>& read) {
  auto listed = read(TRY(read_text(path)));
  if (!listed) return fail(listed.error().offset, path + ": " + listed.error().what);
  return listed;
}

}  // namespace

std::string shell_word(const std::string& text) {
  if (!text.empty() && text.find_first_of(" \t\n'\"$`\\&|;<>()*?[]#~!{}") == text.npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string pip_install(const Options& options, const MachineFacts& machine) {
  return options.python.empty() ? "pip install"
                                : shell_word(machine.python->executable) + " -m pip install";
}

std::string index_words(const Options& options) {
  std::string words;
  auto add = [&](const char* name, const std::string& value) {
    words += std::string(" ") + name + " " + shell_word(is_url(value) ? shown_url(value) : value);
  };
  const auto& from = options.from;
  if (!from.index.empty()) add("--index-url", from.index);
  for (const auto& url : from.extra) add("--extra-index-url", url);
  for (const auto& place : from.find_links) add("--find-links", place);
  for (const auto& file : from.constraints) add("--constraint", file);
  return words + (from.no_index ? " --no-index" : "") + (from.prereleases ? " --pre" : "");
}

void Fitter::choose(FitAnswer& answer) {
  if (const auto* best = best_of(answer.verdicts)) {
    answer.take = best->file;
    answer.command = pip_install(options_, machine_) +
                     (options_.with.empty() ? "" : " " + shell_word(options_.with)) + " " +
                     shell_word(what_to_install(answer, *best));
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
  std::vector<std::string> notes;
  for (const auto& file : options.requirement_files) {
    const bool pyproject = base_name(file) == "pyproject.toml";
    const auto listed = pyproject ? from_pyproject(file, project_dependencies)
                                  : read_requirements(file, options.from, notes);
    if (!listed) return complain(listed.error(), streams);
    std::ranges::copy(*listed, std::back_inserter(options.paths));
  }
  for (const auto& group : options.groups) {
    const auto listed = from_pyproject(
        "pyproject.toml", [&](std::string_view text) { return dependency_group(text, group); });
    if (!listed) return complain(listed.error(), streams);
    std::ranges::copy(*listed, std::back_inserter(options.paths));
  }
  for (const auto& note : notes) complain({0, note}, streams);
  if (!given.from.index.empty()) options.from.index = given.from.index;
  options.from.proxy = given.from.proxy;
  if (options.paths.empty())
    return bad_usage("fit needs a NAME, a wheel, an address, or -r FILE", streams);
  if (options.json && options.format == "pylock")
    return bad_usage("--format pylock writes a lock file: leave --json out", streams);
  for (auto& asked : options.paths) asked = local_path(asked);
  if (asks_two_machines(options, streams)) return usage;
  std::vector<std::string> gpus;
  for (const auto& gpu : options.gpus) {
    const auto known = parse_arch_list(gpu);
    if (!known) return bad_usage("--gpu: " + known.error().what, streams);
    gpus.insert(gpus.end(), known->gpus.begin(), known->gpus.end());
  }
  for (const auto& [option, value] :
       {std::pair("--driver", options.driver), {"--cuda", options.cuda}}) {
    if (value.empty() || parse_version(value) || (option == "--cuda"sv && value == "cpu")) continue;
    return bad_usage(std::string(option) + ": '" + value + "' is no version", streams);
  }
  auto machine = asked_machine(options);
  if (!machine) return complain(machine.error(), streams);
  if (!machine->python)
    return complain(
        {0, machine->notes.empty() ? "the machine has no Python" : machine->notes.front()},
        streams);
  auto& python = *machine->python;
  if (options.machine.empty()) python.site_packages = import_folders(python.site_packages);
  const auto environment = linux_environment(python.version, machine->architecture);
  auto from = index_settings(options, python);
  options.from.prereleases |= from.prereleases;
  if (const auto limits = read_limits(from, environment); !limits)
    return complain(limits.error(), streams);
  std::erase_if(options.paths, [&](const std::string& asked) {
    const bool is_file = is_url(asked) || asked.ends_with(".whl");
    if (is_file || holds(parse_requirement(asked).marker, environment) != false) return false;
    complain({0, "'" + asked + "' is left out: its marker does not hold here"}, streams);
    return true;
  });
  if (!options.driver.empty()) machine->driver = options.driver;
  if (!gpus.empty()) machine->gpus.clear();
  for (const auto& gpu : gpus) machine->gpus.push_back({"a GPU of " + gpu, gpu});
  if (asks_for_set(options)) return fit_set(options, streams, std::move(*machine), std::move(from));
  Fitter fitter(options, streams, *machine, std::move(from));
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
