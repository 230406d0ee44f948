// The questions that decide whether a wheel works on a machine, asked of one candidate: one file
// for each group of them.
#pragma once

#include <set>

#include "answers/fit.h"

namespace wheelscope {

class CandidateJudge {
 public:
  CandidateJudge(const Item& wheel, const MachineFacts& machine, const Lookups& lookups,
                 FitVerdict& verdict);

  void run();

 private:
  bool stop(Obstacle obstacle, Reason reason, Fits fits = Fits::fails) {
    verdict_.fits = fits;
    verdict_.obstacle = obstacle;
    verdict_.reason = std::move(reason);
    return true;
  }

  // A question that decides where nothing else does; the first counts.
  void doubt(Obstacle obstacle, Reason reason) {
    if (open_question_) return;
    open_obstacle_ = obstacle;
    open_question_ = std::move(reason);
  }

  void find_definitions();
  bool is_damaged();
  bool misses_system();

  // What it was built for: Python, torch and NumPy (fit_abi.cc).
  bool misses_python();
  bool runs_sources_instead() const;
  bool misses_init();
  std::string module_of_another_python() const;
  bool goes_beyond_limited_api() const;
  bool misses_private_symbols();
  bool uses_torch() const;
  bool uses_torch(const LibraryFacts& library) const;
  bool is_torchs(const std::string& symbol) const;
  bool misses_torch();
  bool misses_any_torch();
  bool misses_unrequired_torch();
  bool torch_has(const std::string& symbol) const;
  bool misses_symbols();
  bool misses_numpy();

  // Libraries that come from elsewhere (fit_libraries.cc).
  bool requires_any(const std::vector<std::string>& distributions) const;
  bool torch_brings(const std::string& name) const;
  Brought brought(const std::string& name) const;
  Need need_of(const LibraryFacts& library, bool is_opened) const;
  std::set<std::string> opened() const;
  bool is_one_of_several(const LibraryFacts& library);
  bool is_external(const std::string& name) const;
  bool misses_libraries();
  bool misses_library(const LibraryFacts& library, const std::string& name, Brought brought,
                      bool sure);
  Need need_of_any_user(const LibraryFacts& library, bool sure) const;
  bool leads_to(const LibraryFacts& user, const LibraryFacts& wanted) const;
  bool misses_versions(const LibraryFacts& library);
  bool has_file(const std::string& name) const;
  void doubt_versions(const LibraryFacts& library);

  // CUDA: its runtime, the driver and the GPUs (fit_cuda.cc).
  bool misses_runtime();
  bool misses_driver();
  bool misses_unknown_driver();
  bool may_have_device_code() const;
  bool misses_gpus();

  const Item& wheel_;
  const WheelClaims& claims_;
  const MachineFacts& machine_;
  const Lookups& lookups_;
  Cell cell_;
  TorchRequirements requirements_;
  FitVerdict& verdict_;
  std::set<std::string_view> inside_;  // symbols that the wheel defines
  Obstacle open_obstacle_ = Obstacle::none;
  Reason open_question_;
};

}  // namespace wheelscope
