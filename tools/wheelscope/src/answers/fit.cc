// Asks one question after the other, and ends at the first obstacle; here are those about the
// system, the CUDA runtime, the driver and the GPUs.
#include "answers/fit_judge.h"

#include <algorithm>
#include <ranges>

#include "packaging/requirement.h"
#include "packaging/tag.h"
#include "tables/tables.h"
#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {
namespace {

// Explains why no tag of the wheel is one of the machine's.
FitVerdict other_tags(const WheelClaims& claims, const std::string& file,
                      const MachineFacts& machine) {
  FitVerdict verdict{.file = file, .fits = Fits::fails};
  const Item item{.facts = {.file = file, .wheel = claims}};
  const auto cell = cell_of(machine);
  verdict.obstacle = Obstacle::system;
  verdict.reason = machine.libc == "musl" ? Reason() : why_not_arch(item, cell);
  if (verdict.reason) return verdict;
  bool python = false;
  std::string oldest;  // C library among its tags
  for (const auto& text : claims.file_name_tags) {
    const auto tag = split_tag(text);
    python |= admits(tag, PythonBuild(cell.python));
    if (oldest.empty() || promises_more(tag.platform, oldest)) oldest = tag.platform;
  }
  if (python) {
    verdict.reason = {.why = Why::newer_system,
                      .what = oldest,
                      .here = machine.libc + " " + machine.libc_version};
  } else {
    verdict.obstacle = Obstacle::python;
    verdict.reason = {.why = Why::python_tag, .here = cell.python};
  }
  return verdict;
}

}  // namespace

CandidateJudge::CandidateJudge(const Item& wheel, const MachineFacts& machine,
                               const Lookups& lookups, FitVerdict& verdict)
    : wheel_(wheel),
      claims_(*wheel.facts.wheel),
      machine_(machine),
      lookups_(lookups),
      cell_(cell_of(machine)),
      requirements_(claims_),
      verdict_(verdict) {}

void CandidateJudge::run() {
  verdict_.in_part = std::ranges::any_of(wheel_.facts.libraries, &LibraryFacts::in_part);
  find_definitions();
  if (is_damaged() || misses_system() || misses_python() || misses_init() || misses_torch() ||
      misses_numpy() || misses_libraries() || misses_runtime() || misses_driver() || misses_gpus())
    return;
  if (lookups_.refusal) {
    const auto refusal = lookups_.refusal();
    const auto& [reason, need] = refusal;
    const bool of_numpy = reason.why >= Why::numpy_one && reason.why <= Why::numpy_absent;
    const auto obstacle = of_numpy ? Obstacle::numpy : Obstacle::python;
    if (need == Need::always) return (void)stop(obstacle, reason);
    if (need == Need::depends) doubt(obstacle, reason);
    if (need == Need::never && reason && reason.why != Why::refuses)
      verdict_.notes.push_back("an optional part cannot be imported: " + reason.who + " needs " +
                               reason.what + ", which is not here");
  }
  if (open_question_) stop(open_obstacle_, open_question_, Fits::depends);
}

void CandidateJudge::find_definitions() {
  for (const auto& library : wheel_.facts.libraries) {
    for (const auto& symbol : library.symbols) {
      if (symbol.defined) inside_.insert(symbol.name);
    }
  }
}

// Problems that keep an installer or the loader from using the file.
bool CandidateJudge::is_damaged() {
  for (const auto& problem : wheel_.facts.problems.listed) {
    if (!problem.id.starts_with("zip-") && !problem.id.starts_with("wheel-")) continue;
    return stop(Obstacle::unreadable,
                {.why = Why::damaged, .who = problem.place, .what = problem.what});
  }
  return false;
}

bool CandidateJudge::misses_system() {
  const auto& platform = wheel_.verdicts.platform;
  if (machine_.libc != "glibc" || !older(machine_.libc_version, platform.glibc)) return false;
  return stop(Obstacle::system, {.why = Why::newer_glibc,
                                 .what = platform.because.empty() ? "" : platform.because.front(),
                                 .version = platform.glibc});
}

FitVerdict fit_by_name(const WheelClaims& claims, const std::string& file,
                       const MachineFacts& machine) {
  const auto& tags = machine.python->tags;
  for (const auto& tag : claims.file_name_tags) {
    if (!contains(tags, tag)) continue;
    FitVerdict verdict{.file = file};
    if (claims.requires_python.empty() ||
        fulfils(machine.python->version, claims.requires_python) != false)
      return verdict;
    verdict.fits = Fits::fails;
    verdict.obstacle = Obstacle::python;
    verdict.reason = {.why = Why::python_required, .what = claims.requires_python};
    return verdict;
  }
  return other_tags(claims, file, machine);
}

FitVerdict fit(const Item& wheel, const MachineFacts& machine, const Lookups& lookups) {
  if (!wheel.facts.wheel)
    return {.file = wheel.facts.file,
            .fits = Fits::fails,
            .obstacle = Obstacle::unreadable,
            .reason = {.why = Why::not_a_wheel}};
  auto verdict = fit_by_name(*wheel.facts.wheel, wheel.facts.file, machine);
  if (verdict.fits == Fits::works) CandidateJudge(wheel, machine, lookups, verdict).run();
  return verdict;
}

const FitVerdict* best_of(std::span<const FitVerdict> verdicts) {
  const auto found = std::ranges::find(verdicts, Fits::works, &FitVerdict::fits);
  return found == verdicts.end() ? nullptr : &*found;
}

const FitVerdict* nearest_of(std::span<const FitVerdict> verdicts) {
  const FitVerdict* nearest = nullptr;
  for (const auto& verdict : verdicts) {
    const auto nearness = [](const FitVerdict& one) {
      return std::pair(one.fits == Fits::depends, one.obstacle);
    };
    if (!nearest || nearness(*nearest) < nearness(verdict)) nearest = &verdict;
  }
  return nearest;
}

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
