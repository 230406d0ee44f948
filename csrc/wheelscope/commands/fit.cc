// `wheelscope fit`: which file of a project works on a machine.
#include "answers/fit.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "commands/asked_machine.h"
#include "commands/read_item.h"
#include "commands/remote_wheel.h"
#include "index/candidates.h"
#include "index/settings.h"
#include "loader/disk.h"
#include "packaging/metadata.h"
#include "packaging/specifier.h"
#include "packaging/wheel_name.h"
#include "report/json.h"
#include "report/text.h"

namespace wheelscope {
namespace {

using Names = std::unordered_set<std::string>;

void add_definitions(const LibraryFacts* library, Names& names) {
  if (!library) return;
  for (const auto& symbol : library->symbols) {
    if (symbol.defined) names.insert(symbol.name);
  }
}

Names symbols_of_torch(const TorchFacts& torch, Disk& disk) {
  Names names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(torch.path + "/lib", error)) {
    if (is_torch_library(entry.path().filename().string()))
      add_definitions(disk.open(entry.path()), names);
  }
  return names;
}

// An interpreter has the symbols itself, or in a library beside it.
Names symbols_of_python(const PythonFacts& python, Disk& disk, const Surroundings& surroundings) {
  Names names;
  const auto* program = disk.open(python.executable);
  add_definitions(program, names);
  for (const auto& name : program ? program->needed : std::vector<std::string>()) {
    if (!name.starts_with("libpython")) continue;
    const auto* beside = disk.open(python.base_prefix + "/lib/" + name);
    add_definitions(beside ? beside : surroundings.system_library(name), names);
  }
  return names;
}

// What the files of this machine say; read at the first question.
Surroundings surroundings_of(const MachineFacts& machine, Disk& disk, bool torch) {
  auto world = std::make_shared<LoaderWorld>(disk.world(machine.architecture));
  Surroundings surroundings;
  surroundings.system_library = [world](const std::string& name) -> const LibraryFacts* {
    if (const auto cached = world->cached(name); !cached.empty()) {
      if (const auto* library = world->open(cached)) return library;
    }
    for (const auto& folder : world->default_folders) {
      if (const auto* library = world->open(folder + "/" + name)) return library;
    }
    return nullptr;
  };
  auto asking = [](const std::function<Names()>& read) {
    return [read, names = std::make_shared<Names>()](const std::string& symbol) {
      if (names->empty()) *names = read();
      return names->contains(symbol);
    };
  };
  surroundings.python_has = asking([python = *machine.python, &disk, surroundings] {
    return symbols_of_python(python, disk, surroundings);
  });
  if (torch && machine.torch)
    surroundings.torch_has =
        asking([facts = *machine.torch, &disk] { return symbols_of_torch(facts, disk); });
  return surroundings;
}

class Fitter {
 public:
  Fitter(const Options& options, Streams streams, MachineFacts machine)
      : options_(options),
        streams_(streams),
        machine_(std::move(machine)),
        indexes_(options.index.empty() ? configured_indexes(virtual_environment())
                                       : std::vector{options.index}),
        http_(options.timeout),
        cache_(cache_folder()),
        disk_() {}

  // Sets the torch that --with names; false: it cannot be had.
  bool assume_torch();

  FitAnswer answer(const std::string& asked) {
    if (options_.machine.empty())
      surroundings_ = surroundings_of(machine_, disk_, options_.with.empty());
    FitAnswer answer{.asked = asked};
    if (is_url(asked))
      judge_url(asked, answer);
    else if (asked.ends_with(".whl"))
      judge_file(asked, answer);
    else
      judge_project(asked, answer);
    choose(answer);
    return answer;
  }

  bool had_problems() const { return problems_; }

 private:
  Result<TorchFacts> torch_of(const std::string& version);
  FitVerdict judge(const Item& wheel, const Surroundings& surroundings);

  std::string virtual_environment() const {
    const auto& python = machine_.python;
    return python && python->prefix != python->base_prefix ? python->prefix : "";
  }

  void complain_about(const Error& error) {
    complain(error, streams_);
    problems_ = true;
  }

  void judge_file(const std::string& path, FitAnswer& answer) {
    const auto item = read_item(path, {.symbols = true});
    if (!item) return complain_about(item.error());
    auto verdict = judge(*item, surroundings_);
    verdict.size = verdict.read = item->facts.size;
    answer.verdicts.push_back(std::move(verdict));
  }

  void judge_url(const std::string& url, FitAnswer& answer) {
    RemoteFile file{.url = url.substr(0, url.find('#'))};
    constexpr std::string_view mark = "#sha256=";
    if (const auto hash = url.find(mark); hash != url.npos)
      file.sha256 = lower(url.substr(hash + mark.size()));
    const auto name = base_name(shown_url(file.url));
    if (const auto claims = parse_wheel_name(name)) {
      if (auto verdict = fit_by_name(*claims, name, machine_); verdict.fits != Fits::works) {
        answer.verdicts.push_back(std::move(verdict));
        return;
      }
    }
    answer.verdicts.push_back(judge_remote(file, name, {}));
  }

  FitVerdict judge_remote(const RemoteFile& file, const std::string& name, std::string metadata) {
    if (isatty(STDERR_FILENO)) streams_.err << "\r\x1b[Kreading " << printable(name) << std::flush;
    auto wheel = read_remote_wheel(http_, cache_, file, name, std::move(metadata), options_.deep);
    if (isatty(STDERR_FILENO)) streams_.err << "\r\x1b[K" << std::flush;
    if (!wheel) {
      complain_about(wheel.error());
      return {.file = name,
              .fits = Fits::depends,
              .obstacle = Obstacle::unreadable,
              .reason = "it could not be read: " + wheel.error().what,
              .size = file.size.value_or(0)};
    }
    auto verdict = judge(wheel->item, surroundings_);
    verdict.size = wheel->item.facts.size;
    verdict.read = wheel->read;
    if (!wheel->gave_ranges && !options_.deep)
      verdict.notes.emplace_back("its server gives no ranges: all of it was read");
    return verdict;
  }

  // The index's copy of METADATA; empty: there is none, and the file will be asked.
  std::string read_metadata(const IndexFile& file) {
    if (!file.has_metadata) return {};
    constexpr std::uint64_t longest = 16 << 20;
    const auto key = file.url + "#" + file.sha256 + "@metadata";
    if (auto known = file.sha256.empty() ? std::nullopt : cache_.find(key)) return *known;
    const auto answer = http_.get({.url = file.url + ".metadata", .most = longest});
    if (!answer) return {};
    if (!file.sha256.empty()) cache_.store(key, answer->body);
    return answer->body;
  }

  // What the name and METADATA tell, and only if that does not rule it out, what is in the file.
  FitVerdict judge_candidate(const Candidate& candidate) {
    auto by_name = fit_by_name(candidate.claims, candidate.file.name, machine_);
    by_name.size = candidate.file.size.value_or(0);
    if (by_name.fits != Fits::works) return by_name;
    const auto metadata = read_metadata(candidate.file);
    if (!metadata.empty()) {
      Facts facts{.file = candidate.file.name, .wheel = candidate.claims};
      parse_metadata(metadata, *facts.wheel);
      auto verdict = judge({.facts = std::move(facts)}, {});
      verdict.size = by_name.size;
      if (verdict.fits == Fits::fails) return verdict;
    }
    return judge_remote({candidate.file.url, candidate.file.sha256, candidate.file.size},
                        candidate.file.name, metadata);
  }

  void judge_project(const std::string& asked, FitAnswer& answer) {
    const auto requirement = parse_requirement(asked);
    if (requirement.name.empty())
      return complain_about({0, "'" + asked + "' is no requirement, wheel or address"});
    auto found = find_candidates(http_, indexes_, requirement, answer.notes);
    if (!found) return complain_about(found.error());
    auto& wheels = found->wheels;
    const auto& tags = machine_.python->tags;
    auto rank = [&](const Candidate& wheel) {  // the machine's best tag among the wheel's
      auto best = tags.size();
      for (const auto& tag : wheel.claims.file_name_tags)
        best =
            std::min(best, static_cast<std::size_t>(std::ranges::find(tags, tag) - tags.begin()));
      return best;
    };
    std::size_t looked_into = 0, in_a_row = 0;
    std::string last_change;
    for (auto first = wheels.begin(); first != wheels.end();) {
      const auto last = std::ranges::find_if(
          first, wheels.end(), [&](const Candidate& one) { return one.version != first->version; });
      std::stable_sort(first, last,
                       [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
      const bool admitted = std::any_of(first, last, [&](const Candidate& one) {
        return fit_by_name(one.claims, one.file.name, machine_).fits == Fits::works;
      });
      constexpr std::size_t most_looked_into = 8;
      if (looked_into >= most_looked_into || (!admitted && first != wheels.begin())) {
        answer.not_judged += static_cast<std::uint64_t>(last - first);
      } else {
        for (auto one = first; one != last; ++one) {
          answer.verdicts.push_back(judge_candidate(*one));
          addresses_[one->file.name] = one->file.url;
        }
        if (admitted) ++looked_into;
        // Older versions will not mend what is wrong with the machine.
        const auto* nearest =
            nearest_of(std::span(answer.verdicts).last(static_cast<std::size_t>(last - first)));
        in_a_row = admitted && nearest->change == last_change ? in_a_row + 1 : 0;
        last_change = nearest->change;
        if (best_of(answer.verdicts) || in_a_row == 2) looked_into = most_looked_into;
      }
      first = last;
    }
    const bool none_admitted = looked_into == 0;
    if (none_admitted && !found->sdist.empty()) answer.sdist = found->sdist;
    if (wheels.empty() && found->sdist.empty())
      answer.notes.push_back(found->other_versions
                                 ? "the index has " + counted(found->other_versions, "wheel") +
                                       " of other versions, none of " + asked
                                 : "the index has no file of " + asked);
  }

  std::string pip() const {
    const auto words =
        options_.python.empty() ? "pip install" : options_.python + " -m pip install";
    const bool quoted = options_.with.find_first_of("<>! ;") != std::string::npos;
    return words + (options_.with.empty() ? ""
                    : quoted              ? " '" + options_.with + "'"
                                          : " " + options_.with);
  }

  void choose(FitAnswer& answer) {
    if (const auto* best = best_of(answer.verdicts)) {
      answer.take = best->file;
      answer.command = pip() + " " + what_to_install(answer, *best);
      if (!options_.index.empty() && !is_url(answer.asked))
        answer.command += " --index-url " + shown_url(options_.index);
    } else if (const auto* nearest = nearest_of(answer.verdicts)) {
      answer.nearest = nearest->file;
      answer.change = nearest->change.empty() ? nearest->reason : nearest->change;
    }
  }

  // The project with its version, if an installer takes the same file of it.
  std::string what_to_install(const FitAnswer& answer, const FitVerdict& best) const {
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

  const Options& options_;
  Streams streams_;
  MachineFacts machine_;
  std::vector<std::string> indexes_;
  Http http_;
  Cache cache_;
  Disk disk_;
  Surroundings surroundings_;
  std::map<std::string, TorchFacts> torches_;     // by version
  std::map<std::string, std::string> addresses_;  // of files that an index has
  bool problems_ = false;
};

// The CUDA that a torch brings, from what it requires: 12.8; empty: none.
std::string cuda_of(const WheelClaims& torch, const MachineFacts& machine) {
  const auto environment = linux_environment(machine.python->minor(), machine.architecture);
  for (const auto& text : torch.requires_dist) {
    const auto requirement = parse_requirement(text);
    const auto name = canonical_name(requirement.name);
    if ((!name.starts_with("nvidia-cuda-runtime") && name != "cuda-toolkit") ||
        holds(requirement.marker, environment) != true)
      continue;
    const auto specifiers = parse_specifiers(requirement.specifiers);
    if (!specifiers || specifiers->empty()) continue;
    const auto& version = specifiers->front().bound;
    return version.substr(0, version.find('.', version.find('.') + 1));
  }
  return {};
}

// What the index says of a torch; its version may name its CUDA: 2.15.0+cu130.
Result<TorchFacts> Fitter::torch_of(const std::string& version) {
  if (const auto known = torches_.find(version); known != torches_.end()) return known->second;
  TorchFacts torch{.version = version};
  const auto local = version.find("+cu");
  if (local != version.npos && version.size() > local + 4) {
    const auto digits = version.substr(local + 3);
    torch.cuda = digits.substr(0, digits.size() - 1) + "." + digits.back();
  } else if (version.find('+') == version.npos) {
    std::vector<std::string> notes;
    const auto found =
        TRY(find_candidates(http_, indexes_, parse_requirement("torch==" + version), notes));
    const auto fitting = std::ranges::find_if(found.wheels, [&](const Candidate& one) {
      return fit_by_name(one.claims, one.file.name, machine_).fits == Fits::works;
    });
    if (fitting == found.wheels.end())
      return std::unexpected(Error{0, "the index has no torch " + version + " for this machine"});
    auto claims = fitting->claims;
    auto metadata = read_metadata(fitting->file);
    if (metadata.empty())
      metadata = TRY(read_remote_metadata(
          http_, cache_, {fitting->file.url, fitting->file.sha256, fitting->file.size}));
    parse_metadata(metadata, claims);
    torch.cuda = cuda_of(claims, machine_);
  }
  return torches_[version] = torch;
}

bool Fitter::assume_torch() {
  const auto requirement = parse_requirement(options_.with);
  const auto specifiers = parse_specifiers(requirement.specifiers);
  if (canonical_name(requirement.name) != "torch" || !specifiers || specifiers->size() != 1 ||
      specifiers->front().sign != "==") {
    complain({0, "--with takes torch==VERSION, not '" + options_.with + "'"}, streams_);
    return false;
  }
  const auto torch = torch_of(specifiers->front().bound);
  if (!torch) {
    complain(torch.error(), streams_);
    return false;
  }
  machine_.torch = *torch;
  machine_.cuda_libraries.clear();
  return true;
}

FitVerdict Fitter::judge(const Item& wheel, const Surroundings& surroundings) {
  if (machine_.torch || !wheel.facts.wheel) return fit(wheel, machine_, surroundings);
  // An installer brings the torch that the wheel names.
  const auto exact = TorchRequirements(*wheel.facts.wheel).exact();
  const auto torch = exact.empty() ? Result<TorchFacts>() : torch_of(exact);
  if (exact.empty() || !torch) return fit(wheel, machine_, surroundings);
  auto machine = machine_;
  machine.torch = *torch;
  auto verdict = fit(wheel, machine, surroundings);
  verdict.notes.push_back("installs torch " + exact +
                          (torch->cuda.empty() ? "" : " with CUDA " + torch->cuda));
  return verdict;
}

}  // namespace

int fit(const Options& options, Streams streams) {
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
