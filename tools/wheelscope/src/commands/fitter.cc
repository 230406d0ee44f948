// Judges by the file name first, then by METADATA, then by the file: each costs more than the one
// before.
#include "commands/fitter.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "answers/required_modules.h"
#include "commands/inputs.h"
#include "index/settings.h"
#include "packaging/claims.h"
#include "packaging/requirement.h"
#include "source/budget.h"

namespace wheelscope {

PipSettings index_settings(const Options& options, const PythonFacts& python) {
  const auto environment = python.prefix != python.base_prefix ? python.prefix : "";
  auto settings = configured_settings(options.from, environment);
  for (const auto* name : {"http_proxy", "https_proxy"}) {
    if (!settings.proxy.empty()) setenv(name, settings.proxy.c_str(), 1);
  }
  return settings;
}

Fitter::Fitter(const Options& options, Streams streams, MachineFacts machine, PipSettings from)
    : options_(options),
      streams_(streams),
      machine_(std::move(machine)),
      index_{std::move(from), Http(options.timeout), Cache(cache_folder())},
      torches_(index_, machine_),
      required_(index_, machine_,
                options.machine.empty() ? list_distributions(machine_.python->site_packages)
                                        : std::vector<Distribution>()) {
  if (options.machine.empty()) modules_.emplace(*machine_.python);
}

FitAnswer Fitter::answer(const std::string& asked) {
  if (options_.machine.empty()) lookups_ = lookups_on(machine_, disk_, options_.with.empty());
  FitAnswer answer{.asked = asked};
  extras_ = is_url(asked) || asked.ends_with(".whl") ? std::vector<std::string>()
                                                     : parse_requirement(asked).extras;
  const auto requirement = parse_requirement(asked);
  const auto address = is_url(asked) ? asked : requirement.url;
  const auto named = parse_wheel_name(base_name(address.substr(0, address.find_first_of("?#"))));
  if (!requirement.url.empty() && named &&
      canonical_name(named->name) != canonical_name(requirement.name)) {
    complain_about({0, "'" + asked + "' is a wheel of another project"});
    return answer;
  }
  if (is_url(address))
    judge_url(address, answer);
  else if (address.starts_with(local_file))
    judge_file(local_path(address), answer);
  else if (!address.empty())
    complain_about({0, "'" + asked + "' names no wheel: it has to be built"});
  else if (asked.ends_with(".whl"))
    judge_file(asked, answer);
  else
    judge_project(asked, answer);
  choose(answer);
  return answer;
}

void Fitter::complain_about(const Error& error) {
  const std::scoped_lock lock(telling_);
  complain(error, streams_);
  problems_ = true;
}

void Fitter::judge_file(const std::string& path, FitAnswer& answer) {
  const auto wheel = read_local_wheel(path);
  if (!wheel) return complain_about(wheel.error());
  auto verdict = judge(wheel->item, wheel->files);
  verdict.size = verdict.read = wheel->item.facts.size;
  answer.verdicts.push_back(std::move(verdict));
}

void Fitter::judge_url(const std::string& url, FitAnswer& answer) {
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

void Fitter::show_progress(const std::string& text) {
  if (!isatty(STDERR_FILENO)) return;
  const std::scoped_lock lock(telling_);
  streams_.err << "\r\x1b[K" << text << std::flush;
}

FitVerdict Fitter::judge_remote(const RemoteFile& file, const std::string& name,
                                std::string metadata) {
  show_progress("reading " + printable(name));
  std::jthread ahead;  // looks up the wheel's torch while libraries are read
  auto wheel =
      read_remote_wheel(index_.http, index_.cache, file, name, std::move(metadata),
                        {.deep = options_.deep, .numpy = required_.has_here("numpy")},
                        [&](const WheelClaims& claims) {
                          if (auto torch = torch_that_comes_with(claims); !torch.empty())
                            ahead = std::jthread([this, torch] { (void)torches_.find(torch); });
                        });
  show_progress("");
  if (!wheel) {
    complain_about(wheel.error());
    auto verdict = unread(name, wheel.error().what);
    verdict.size = file.size.value_or(0);
    return verdict;
  }
  auto verdict = judge(wheel->item, wheel->files);
  verdict.size = wheel->item.facts.size;
  verdict.read = wheel->remote->read();
  if (!wheel->gave_ranges && !options_.deep)
    verdict.notes.emplace_back("its server gives no ranges: all of it was read");
  return verdict;
}

FitVerdict Fitter::judge_candidate(const Candidate& candidate) {
  auto by_name = fit_by_name(candidate.claims, candidate.file.name, machine_);
  by_name.size = candidate.file.size.value_or(0);
  if (by_name.fits != Fits::works) return by_name;
  const auto file = on_its_server(candidate.file);
  if (!options_.deep && !machine_.torch) {
    Remote::expect(index_.http, index_.cache, file);
    torches_.expect();
  }
  const auto metadata = metadata_of_index(index_.http, index_.cache, candidate.file);
  if (!metadata.empty()) {
    Facts facts{.file = candidate.file.name, .wheel = candidate.claims};
    parse_metadata(metadata, *facts.wheel);
    auto verdict = wheelscope::fit({.facts = std::move(facts)}, machine_, {});
    verdict.size = by_name.size;
    if (verdict.fits == Fits::fails) return verdict;
  }
  return judge_remote(file, candidate.file.name, metadata);
}

std::vector<FitVerdict> Fitter::judge_all(std::span<const Candidate> candidates) {
  const unsigned files_at_once = options_.deep ? 1 : 8;
  std::vector<FitVerdict> verdicts(candidates.size());
  run_in_parallel(candidates.size(), files_at_once,
                  [&](std::size_t i) { verdicts[i] = judge_candidate(candidates[i]); });
  return verdicts;
}

void Fitter::judge_project(const std::string& asked, FitAnswer& answer) {
  const auto requirement = parse_requirement(asked);
  if (!is_project_name(requirement.name))
    return complain_about({0, "'" + asked + "' is no requirement, wheel or address"});
  auto found = find_candidates(index_, requirement, answer.notes);
  if (!found) return complain_about(found.error());
  auto& wheels = found->wheels;
  const auto& tags = machine_.python->tags;
  std::size_t looked_into = 0, in_a_row = 0;
  Reason last_reason;
  for (auto first = wheels.begin(); first != wheels.end();) {
    const auto last = std::ranges::find_if(
        first, wheels.end(), [&](const Candidate& one) { return one.version != first->version; });
    std::stable_sort(first, last, [&](const Candidate& a, const Candidate& b) {
      return rank_of(a.claims, tags) < rank_of(b.claims, tags);
    });
    const bool admitted = std::any_of(first, last, [&](const Candidate& one) {
      return fit_by_name(one.claims, one.file.name, machine_).fits == Fits::works;
    });
    constexpr std::size_t most_looked_into = 8;
    if (looked_into >= most_looked_into || (!admitted && first != wheels.begin())) {
      answer.not_judged += static_cast<std::uint64_t>(last - first);
    } else {
      std::ranges::move(judge_all({first, last}), std::back_inserter(answer.verdicts));
      for (auto one = first; one != last; ++one) addresses_[one->file.name] = one->file.url;
      if (admitted) ++looked_into;
      // Older versions will not fix what is wrong with the machine.
      const auto* nearest =
          nearest_of(std::span(answer.verdicts).last(static_cast<std::size_t>(last - first)));
      in_a_row = admitted && is_alike(nearest->reason, last_reason) ? in_a_row + 1 : 0;
      last_reason = nearest->reason;
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

bool Fitter::is_alike(Reason a, Reason b) {
  a.who = b.who = "";
  return a == b;
}

bool Fitter::assume_torch() {
  const auto requirement = parse_requirement(options_.with);
  const auto specifiers = parse_specifiers(requirement.specifiers);
  if (canonical_name(requirement.name) != "torch" || !specifiers || specifiers->size() != 1 ||
      specifiers->front().sign != "==") {
    complain({0, "--with takes torch==VERSION, not '" + options_.with + "'"}, streams_);
    return false;
  }
  const auto torch = torches_.find(specifiers->front().bound);
  if (!torch) {
    complain(torch.error(), streams_);
    return false;
  }
  machine_.torch = *torch;
  machine_.cuda_libraries.clear();
  return true;
}

std::string Fitter::torch_that_comes_with(const WheelClaims& wheel) const {
  return machine_.torch ? "" : TorchRequirements(wheel).exact();
}

std::optional<const WheelFiles*> Fitter::find_required(const WantedWheel& wheel,
                                                       const std::string& module) {
  const auto top = module.substr(0, module.find('.'));
  if (top == "torch" || top == "nvidia" || modules_->is_open() || modules_->is_standard(top))
    return std::nullopt;
  const auto found = required_.first_with(wheel, module);
  return found && !*found && modules_->is_installed(module) ? std::nullopt : found;
}

FitVerdict Fitter::judge(const Item& wheel, const WheelFiles& files) {
  const auto claims = wheel.facts.wheel.value_or(WheelClaims());
  const auto version = torch_that_comes_with(claims);
  const auto torch = version.empty() ? Result<TorchFacts>() : torches_.find(version);
  const std::scoped_lock lock(judging_);  // files are looked up by one thread at a time
  auto lookups = lookups_;
  const WantedWheel wanted{claims, extras_};
  lookups.required_wheels = [&](const std::string& library) {
    return required_.bring(wanted, library);
  };
  lookups.numpy = [&] { return required_.numpy_met_by(wanted); };
  std::unique_ptr<WheelImports> imports;
  lookups.imports = [&]() -> const WheelImports* {
    if (!imports && files.read) imports = std::make_unique<WheelImports>(*machine_.python, files);
    return imports.get();
  };
  const auto may_have = [&](const std::string& module) {
    return (module == "torch" && machine_.torch) || modules_->may_have(module) ||
           required_.bring_module(wanted, module == "distutils" ? "_distutils_hack" : module) !=
               Brought::no;
  };
  lookups.refusal = [&] {
    if (auto unmet = required_.unmet(wanted); !unmet.empty())
      return Refusal{{.why = Why::requirement_unmet, .what = std::move(unmet)}, Need::always};
    if (auto clash = required_.numpy_clash(wanted)) return Refusal{std::move(clash), Need::depends};
    if (!modules_) return refusal_in(files, *machine_.python);
    RequiredModules modules(
        *machine_.python, [&](const std::string& module) { return find_required(wanted, module); });
    const OtherModules others{
        .may_be_there = may_have,
        .may_have = [&](const std::string& module,
                        const std::string& name) { return modules_->may_have(module, name); },
        .may_open =
            [&](const std::string& library) {
              return lookups_.system_library(library) ||
                     required_.bring(wanted, library) != Brought::no;
            },
        .required =
            [&](const OtherModules::IsWanted& is_wanted) {
              return required_.files_of(wanted, is_wanted);
            },
        .lacking = [&](const ImportStatement& statement) { return modules.lacking(statement); }};
    auto refusal = refusal_in(files, *machine_.python, others);
    const bool is_of_other = refusal.reason.why == Why::required_lacks;
    if (refusal.need == Need::depends || (refusal.need == Need::always && !is_of_other))
      return refusal;
    // Then an installer takes another version of something, and this may have what is lacking.
    auto conflict = required_.conflict(wanted);
    if (!conflict) return refusal;
    if (refusal.need == Need::never) return Refusal{std::move(conflict), Need::depends};
    refusal.need = Need::depends;
    return refusal;
  };
  if (machine_.torch && TorchRequirements(claims).exact() != "") {
    const auto plain = machine_.torch->version.substr(0, machine_.torch->version.find('+'));
    const auto usual = torches_.find(plain);
    lookups.same_cuda_as_index = usual && usual->cuda == machine_.torch->cuda;
  } else if (machine_.torch) {
    lookups.same_cuda_as_index = false;
  }
  if (version.empty() || !torch) return wheelscope::fit(wheel, machine_, lookups);
  auto machine = machine_;
  machine.torch = *torch;
  auto verdict = wheelscope::fit(wheel, machine, lookups);
  verdict.notes.push_back("installs torch " + version +
                          (torch->cuda.empty() ? "" : " with CUDA " + torch->cuda));
  return verdict;
}

}  // namespace wheelscope
