// `wheelscope fit`: which file of a project works on a machine, and the command that installs it.
#include <algorithm>

#include "commands/asked_machine.h"
#include "commands/fitter.h"
#include "index/settings.h"
#include "packaging/wheel_name.h"
#include "report/json.h"
#include "report/text.h"

namespace wheelscope {
namespace {

// A word of a shell's command, in quotes where it needs them.
std::string shell_word(const std::string& text) {
  if (text.find_first_of(" \t'\"$`\\&|;<>()*?[]#~!{}") == text.npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::string Fitter::pip() const {
  const auto words = options_.python.empty()
                         ? "pip install"
                         : shell_word(machine_.python->executable) + " -m pip install";
  return words + (options_.with.empty() ? "" : " " + shell_word(options_.with));
}

std::string Fitter::index_words() const {
  std::string words;
  auto add = [&](const char* name, const std::string& value) {
    words += std::string(" ") + name + " " + shell_word(is_url(value) ? shown_url(value) : value);
  };
  if (!options_.index.empty()) add("--index-url", options_.index);
  for (const auto& url : options_.extra_indexes) add("--extra-index-url", url);
  for (const auto& place : options_.find_links) add("--find-links", place);
  return words + (options_.no_index ? " --no-index" : "") + (options_.prereleases ? " --pre" : "");
}

void Fitter::choose(FitAnswer& answer) {
  if (const auto* best = best_of(answer.verdicts)) {
    answer.take = best->file;
    answer.command = pip() + " " + what_to_install(answer, *best);
    if (!is_url(answer.asked)) answer.command += index_words();
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
    auto listed = read_requirements(file, from_files, notes);
    if (!listed) return complain(listed.error(), streams);
    std::ranges::move(*listed, std::back_inserter(options.paths));
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
