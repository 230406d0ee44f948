// Finds and reads the files of a project, a wheel or an address, and judges each for one machine.
#pragma once

#include <map>
#include <mutex>

#include "answers/fit.h"
#include "commands/commands.h"
#include "commands/inputs.h"
#include "commands/remote_wheel.h"
#include "commands/required_wheels.h"
#include "facts/machine.h"
#include "index/candidates.h"
#include "machine/imports.h"

namespace wheelscope {

// The indexes and pages of links that the command line names, or that pip and uv are configured
// for, in the environment of this Python.
std::vector<std::string> index_addresses(const Options& options, const PythonFacts& python = {});

// How a command begins that installs something for the machine's Python, and the options of the
// command line that pip needs as well.
std::string pip_install(const Options& options, const MachineFacts& machine);
std::string index_words(const Options& options);

class Fitter {
 public:
  Fitter(const Options& options, Streams streams, MachineFacts machine);

  // Sets the torch that --with names; false: it cannot be had.
  bool assume_torch();

  FitAnswer answer(const std::string& asked);

  bool had_problems() const { return problems_; }

 private:
  FitVerdict judge(const Item& wheel, const WheelFiles& files);

  // The version that an installer brings, where there is none and the wheel names one; else empty.
  std::string torch_that_comes_with(const WheelClaims& wheel) const;

  void complain_about(const Error& error);

  void judge_file(const std::string& path, FitAnswer& answer);

  void judge_url(const std::string& url, FitAnswer& answer);

  // A line that is there until the next one.
  void show_progress(const std::string& text);

  FitVerdict judge_remote(const RemoteFile& file, const std::string& name, std::string metadata);

  // What the name and METADATA tell, and only if that does not rule it out, what is in the file.
  // Over a network time goes by in waiting: what will be asked next is asked for at once. Where
  // there is a torch, METADATA may ask for another one and so spare the file.
  FitVerdict judge_candidate(const Candidate& candidate);

  // All files of a version, side by side.
  std::vector<FitVerdict> judge_all(std::span<const Candidate> candidates);

  void judge_project(const std::string& asked, FitAnswer& answer);

  // The same obstacle, whatever library of the wheel meets it.
  static bool is_alike(Reason a, Reason b);

  void choose(FitAnswer& answer);

  // The project with its version, if an installer takes the same file of it.
  std::string what_to_install(const FitAnswer& answer, const FitVerdict& best) const;

  const Options& options_;
  Streams streams_;
  MachineFacts machine_;
  std::vector<std::string> indexes_;
  Http http_;
  Cache cache_;
  Disk disk_;
  std::mutex telling_, judging_;  // what one thread does at a time
  Lookups lookups_;
  TorchLookup torches_;
  RequiredWheels required_;
  std::optional<ModulesHere> modules_;  // of this machine, if the question is about it
  std::vector<std::string> extras_;
  std::map<std::string, std::string> addresses_;  // of files that an index has
  bool problems_ = false;
};

// Whether the command line asks for a set of packages that work together: for more than one
// project, or in a way that only sets have.
bool asks_for_set(const Options& options);

int fit_set(const Options& options, Streams streams, MachineFacts machine);

}  // namespace wheelscope
