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
#include "index/settings.h"
#include "machine/imports.h"

namespace wheelscope {

// Returns the settings of the command line, and those that pip and uv are configured for in the
// environment of this Python. Puts the proxy where libcurl looks for it.
PipSettings index_settings(const Options& options, const PythonFacts& python = {});

// Returns the start of a command that installs something for the machine's Python, and the options
// of the command line that pip needs too.
std::string pip_install(const Options& options, const MachineFacts& machine);
std::string index_words(const Options& options);

// Returns a word for a shell's command, quoted if necessary.
std::string shell_word(const std::string& text);

class Fitter {
 public:
  Fitter(const Options& options, Streams streams, MachineFacts machine, PipSettings from);

  // Sets the torch that --with names; false if it is not available.
  bool assume_torch();

  FitAnswer answer(const std::string& asked);

  bool had_problems() const { return problems_; }

 private:
  FitVerdict judge(const Item& wheel, const WheelFiles& files);

  // Finds the first required distribution that has a module, for RequiredModules.
  std::optional<const WheelFiles*> find_required(const WantedWheel& wheel,
                                                 const std::string& module);

  // Returns the torch that an installer brings, if none is installed and the wheel names one; else
  // empty.
  std::string torch_that_comes_with(const WheelClaims& wheel) const;

  void complain_about(const Error& error);

  void judge_file(const std::string& path, FitAnswer& answer);

  void judge_url(const std::string& url, FitAnswer& answer);

  // Shows a line that the next one replaces.
  void show_progress(const std::string& text);

  FitVerdict judge_remote(const RemoteFile& file, const std::string& name, std::string metadata);

  // Judges by the name and METADATA, and reads the file only if they do not rule it out. Requests
  // the next thing early, since most of the time over a network is waiting. If a torch is
  // installed, METADATA may ask for another one, which saves reading the file.
  FitVerdict judge_candidate(const Candidate& candidate);

  // Judges all files of a version in parallel.
  std::vector<FitVerdict> judge_all(std::span<const Candidate> candidates);

  void judge_project(const std::string& asked, FitAnswer& answer);

  // True if both are the same obstacle, in whatever library of the wheel.
  static bool is_alike(Reason a, Reason b);

  void choose(FitAnswer& answer);

  // The project with its version, if an installer takes the same file of it.
  std::string what_to_install(const FitAnswer& answer, const FitVerdict& best) const;

  const Options& options_;
  Streams streams_;
  MachineFacts machine_;
  PackageIndex index_;
  Disk disk_;
  std::mutex telling_, judging_;  // for what only one thread may do at a time
  Lookups lookups_;
  TorchLookup torches_;
  RequiredWheels required_;
  std::optional<ModulesHere> modules_;  // of this machine, if the question is about it
  std::vector<std::string> extras_;
  std::map<std::string, std::string> addresses_;  // of files that an index has
  bool problems_ = false;
};

// True if the command line asks for a set of packages that work together: for more than one
// project, or in a way that only sets allow.
bool asks_for_set(const Options& options);

int fit_set(const Options& options, Streams streams, MachineFacts machine, PipSettings from);

}  // namespace wheelscope
