// Judges whether a wheel's CUDA runtime and device code suit the machine's driver and GPUs.
#include <algorithm>
#include <ranges>

#include "answers/fit_judge.h"
#include "tables/tables.h"
#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {

// A runtime of its own; those that it needs from elsewhere are libraries like others.
bool CandidateJudge::misses_runtime() {
  if (!machine_.torch || !uses_torch()) return false;
  auto reason = cell_.cuda == "cpu" ? why_not_without_cuda(wheel_) : why_not_runtime(wheel_, cell_);
  if (!reason || reason.why == Why::runtime_unknown || reason.why == Why::runtime_other)
    return false;
  if (reason.why == Why::cpu_torch && brought(reason.what) == Brought::yes) return false;
  return stop(Obstacle::cuda, std::move(reason));
}

bool CandidateJudge::misses_driver() {
  const auto& cuda = wheel_.verdicts.cuda;
  if (cuda.runtime == CudaRuntime::none && cuda.sass.empty() && cuda.ptx.empty()) return false;
  if (machine_.driver.empty()) {
    verdict_.notes.emplace_back("there is no NVIDIA driver here: nothing of it runs on a GPU");
    return false;
  }
  if (cuda.min_driver && older(machine_.driver, *cuda.min_driver))
    return stop(Obstacle::driver,
                {.why = Why::driver_older, .version = *cuda.min_driver, .here = machine_.driver});
  return misses_unknown_driver();
}

// The runtime's version is unknown; only the newest drivers are safe.
bool CandidateJudge::misses_unknown_driver() {
  const auto runtime = std::ranges::find_if(
      wheel_.facts.libraries,
      [](const LibraryFacts& library) { return library.in_part && library.cudart_version == ""; });
  const auto drivers = std::views::values(cuda_table().drivers);
  const auto newest = *std::ranges::max_element(drivers, older);
  if (runtime == wheel_.facts.libraries.end() || !older(machine_.driver, newest)) return false;
  return stop(Obstacle::driver,
              {.why = Why::driver_unknown,
               .who = runtime->path,
               .version = newest,
               .here = machine_.driver},
              Fits::depends);
}

bool CandidateJudge::may_have_device_code() const {
  if (wheel_.verdicts.cuda.runtime != CudaRuntime::none || claims_.claims_cuda) return true;
  return std::ranges::any_of(wheel_.facts.libraries, [](const LibraryFacts& library) {
    return library.role == Role::device ||
           std::ranges::any_of(library.needed, [](const std::string& name) {
             return name == "libcuda.so.1" || cuda_libraries().contains(name);
           });
  });
}

bool CandidateJudge::misses_gpus() {
  const auto& cuda = wheel_.verdicts.cuda;
  if (verdict_.in_part) {
    if (may_have_device_code() && !machine_.gpus.empty())
      verdict_.notes.emplace_back(
          "whether it has code for the GPUs here was not looked at: --deep tells");
    return false;
  }
  for (const auto& gpu : machine_.gpus) {
    const auto judged = std::ranges::find(cuda.gpus, gpu.capability, &GpuVerdict::capability);
    if (judged == cuda.gpus.end()) continue;
    if (judged->served == Served::no)
      return stop(Obstacle::gpu, {.why = Why::gpu_unserved,
                                  .who = judged->library,
                                  .what = gpu.name,
                                  .version = gpu.capability});
    if (judged->min_driver && older(machine_.driver, *judged->min_driver))
      return stop(Obstacle::driver, {.why = Why::driver_older,
                                     .who = gpu.name,
                                     .version = *judged->min_driver,
                                     .here = machine_.driver});
    verdict_.notes.push_back(gpu.name + ": " +
                             (judged->served == Served::native
                                  ? "native, by " + judged->by
                                  : "compiled by the driver at first use, from " + judged->by));
  }
  return false;
}

}  // namespace wheelscope
