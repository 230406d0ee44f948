// Asks one question after the other, and ends at the first obstacle.
#include "answers/fit.h"

#include <algorithm>
#include <ranges>

#include "answers/providers.h"
#include "facts/wheel.h"
#include "packaging/marker.h"
#include "packaging/requirement.h"
#include "packaging/specifier.h"
#include "packaging/tag.h"
#include "tables/tables.h"
#include "text/dotted_version.h"
#include "text/text.h"
#include "verdicts/cuda.h"
#include "verdicts/numpy_abi.h"
#include "verdicts/platform.h"

namespace wheelscope {
namespace {

std::string public_version(const std::string& version) {
  return version.substr(0, version.find('+'));
}

Cell cell_of(const MachineFacts& machine) {
  Cell cell{.arch = machine.architecture};
  if (machine.python)
    cell.python = machine.python->minor() + (machine.python->free_threaded() ? "t" : "");
  if (machine.torch) {
    cell.torch = public_version(machine.torch->version);
    cell.cuda = machine.torch->cuda.empty() ? "cpu" : machine.torch->cuda;
  }
  return cell;
}

class CandidateJudge {
 public:
  CandidateJudge(const Item& wheel, const MachineFacts& machine, const Surroundings& surroundings,
                 FitVerdict& verdict)
      : wheel_(wheel),
        claims_(*wheel.facts.wheel),
        machine_(machine),
        surroundings_(surroundings),
        cell_(cell_of(machine)),
        requirements_(claims_),
        suppliers_(machine, claims_, surroundings),
        verdict_(verdict) {}

  void run() {
    verdict_.in_part = std::ranges::any_of(wheel_.facts.libraries, &LibraryFacts::in_part);
    find_definitions();
    if (is_damaged() || misses_system() || misses_python() || misses_torch() || misses_numpy() ||
        misses_libraries() || misses_runtime() || misses_driver() || misses_gpus())
      return;
    if (surroundings_.refusal) {
      const auto refusal = surroundings_.refusal();
      const Reason reason{.why = Why::refuses, .who = refusal.file};
      if (refusal.need == Need::always) return (void)stop(Obstacle::python, reason);
      if (refusal.need == Need::depends) doubt(Obstacle::python, reason);
    }
    if (open_question_) stop(open_obstacle_, open_question_, Fits::depends);
  }

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

  void find_definitions() {
    for (const auto& library : wheel_.facts.libraries) {
      for (const auto& symbol : library.symbols) {
        if (symbol.defined) inside_.insert(symbol.name);
      }
    }
  }

  // Problems that keep an installer or the loader from using the file.
  bool is_damaged() {
    for (const auto& problem : wheel_.facts.problems.listed) {
      if (!problem.id.starts_with("zip-") && !problem.id.starts_with("wheel-")) continue;
      return stop(Obstacle::unreadable,
                  {.why = Why::damaged, .who = problem.place, .what = problem.what});
    }
    return false;
  }

  bool misses_system() {
    const auto& platform = wheel_.verdicts.platform;
    if (machine_.libc != "glibc" || !older(machine_.libc_version, platform.glibc)) return false;
    return stop(Obstacle::system, {.why = Why::newer_glibc,
                                   .what = platform.because.empty() ? "" : platform.because.front(),
                                   .version = platform.glibc});
  }

  bool misses_python() {
    auto reason = why_not_python(wheel_, cell_);
    if (!reason) return false;
    if (const auto other = module_of_another_python(); !other.empty())
      return stop(Obstacle::python, {.why = Why::python_of_one_module, .who = other},
                  Fits::depends);
    if (!goes_beyond_limited_api()) return stop(Obstacle::python, std::move(reason));
    return misses_private_symbols();
  }

  // A module that its file name binds to one Python, among others that are bound to none.
  std::string module_of_another_python() const {
    std::string bound;
    bool others = false;
    for (const auto& library : wheel_.facts.libraries) {
      if (!library.python_module) continue;
      if (library.path.find(".cpython-") == std::string::npos)
        others = true;
      else
        bound = library.path;
    }
    return others ? bound : "";
  }

  // Its tag is for later Pythons, but its modules need what the limited API does not promise them.
  bool goes_beyond_limited_api() const {
    const auto& python = wheel_.verdicts.python;
    return python.abi == PythonAbi::version &&
           std::ranges::any_of(claims_.file_name_tags,
                               [](const auto& tag) { return split_tag(tag).abi == "abi3"; }) &&
           !python.by_file_names;
  }

  bool misses_private_symbols() {
    for (const auto& library : wheel_.facts.libraries) {
      for (const auto& [symbol, needed] : library.python_symbols) {
        if (!needed || python_abi3().contains(symbol)) continue;
        if (!surroundings_.python_has)
          return stop(Obstacle::python,
                      {.why = Why::python_private_unsure, .who = library.path, .what = symbol},
                      Fits::depends);
        if (!surroundings_.python_has(symbol))
          return stop(Obstacle::python,
                      {.why = Why::python_private, .who = library.path, .what = symbol});
      }
    }
    return false;
  }

  // Symbols of torch's that the wheel does not bring itself, as torch does, and packages that have
  // copies of its code.
  bool uses_torch() const {
    if (canonical_name(claims_.name) == "torch") return false;
    return std::ranges::any_of(wheel_.facts.libraries, [&](const LibraryFacts& library) {
      return std::ranges::any_of(library.needed,
                                 [&](const std::string& name) {
                                   return is_torch_library(name) && !brings(name);
                                 }) ||
             std::ranges::any_of(library.torch_symbols, [&](const auto& symbol) {
               return !inside_.contains(symbol.first) && is_torchs(symbol.first);
             });
    });
  }

  // Names that mention torch's types may be another library's: they count where the wheel says
  // that it builds on torch.
  bool is_torchs(const std::string& symbol) const {
    return !requirements_.empty() || torch_shims().contains(symbol) ||
           wheel_.facts.libraries.size() == 1;
  }

  bool misses_torch() {
    if (!machine_.torch) return uses_torch() && misses_any_torch();
    const auto& torch = *machine_.torch;
    if (auto reason = requirements_.why_not(cell_)) {
      reason.version = requirements_.exact();
      reason.here = torch.version;
      return stop(Obstacle::torch, std::move(reason));
    }
    if (!uses_torch()) return false;
    if (surroundings_.torch_has) {
      if (misses_symbols()) return true;
    } else if (auto reason = why_not_torch(wheel_, cell_, requirements_)) {
      const auto fits = reason.why == Why::torch_unsaid ? Fits::depends : Fits::fails;
      return stop(Obstacle::torch, std::move(reason), fits);
    }
    const auto* imports = surroundings_.imports ? surroundings_.imports() : nullptr;
    if (imports && !imports->asks_for_cuda().empty() && !surroundings_.same_cuda_as_index)
      doubt(Obstacle::torch, {.why = Why::torch_asked, .who = imports->asks_for_cuda()});
    return false;
  }

  bool misses_any_torch() {
    if (requirements_.empty()) return stop(Obstacle::torch, {.why = Why::torch_absent});
    const auto exact = requirements_.exact();
    if (exact.empty() && wheel_.verdicts.torch.abi == TorchAbi::cxx)
      return stop(Obstacle::torch, {.why = Why::torch_unsaid}, Fits::depends);
    verdict_.notes.push_back("installs torch" + (exact.empty() ? "" : " " + exact));
    return false;
  }

  // What torch's own libraries do not define, and no library of the wheel does.
  bool misses_symbols() {
    for (const auto& library : wheel_.facts.libraries) {
      if (!std::ranges::any_of(library.needed, is_torch_library) && !library.python_module)
        continue;
      for (const auto& [symbol, needed] : library.torch_symbols) {
        if (!needed || inside_.contains(symbol) || surroundings_.torch_has(symbol)) continue;
        return stop(Obstacle::torch, {.why = Why::torch_symbol,
                                      .who = library.path,
                                      .what = symbol,
                                      .version = requirements_.exact(),
                                      .here = machine_.torch->version});
      }
    }
    return false;
  }

  // Modules that were built for another NumPy than they will meet. A library that is no module
  // imports NumPy's API when something calls it, and may go on without.
  bool misses_numpy() {
    if (canonical_name(claims_.name) == "numpy" || !surroundings_.numpy) return false;
    for (const auto& library : wheel_.facts.libraries) {
      if (!library.numpy || library.machine != machine_.architecture) continue;
      const auto version = surroundings_.numpy();
      if (!version) return false;
      Reason reason{.who = library.path, .version = library.numpy->min, .here = *version};
      switch (clash_with_numpy(*library.numpy, *version)) {
        case NumpyClash::none:
          if (!version->empty()) continue;
          reason.why = Why::numpy_absent;
          break;
        case NumpyClash::old_headers:
        case NumpyClash::old_types:
          reason.why = Why::numpy_one;
          break;
        case NumpyClash::new_headers:
          reason.why = Why::numpy_two;
          break;
        case NumpyClash::new_functions:
          reason.why = Why::numpy_older;
          break;
      }
      const auto need = library.python_module ? need_of(library, true) : Need::depends;
      if (need == Need::always) return stop(Obstacle::numpy, std::move(reason));
      if (need == Need::depends) doubt(Obstacle::numpy, std::move(reason));
    }
    return false;
  }

  // Whether an import fails where a library does not load. Without the wheel's Python code, what
  // is known is that modules are imported, and all else may be.
  Need need_of(const LibraryFacts& library, bool is_opened) const {
    const auto* imports = surroundings_.imports ? surroundings_.imports() : nullptr;
    if (imports) return imports->need_of(installed_path(library.path), library.python_module);
    return is_opened ? Need::always : Need::depends;
  }

  // Whether Python opens the library itself, or what it opens needs it. Others are opened by code
  // that may do without.
  std::set<std::string> opened() const {
    std::map<std::string, const LibraryFacts*> by_name;
    std::vector<const LibraryFacts*> waiting;
    bool modules = false;
    for (const auto& library : wheel_.facts.libraries) {
      by_name[base_name(library.path)] = &library;
      if (!library.soname.empty()) by_name.try_emplace(library.soname, &library);
      modules |= library.python_module;
    }
    for (const auto& library : wheel_.facts.libraries) {
      if (library.loadable() && (library.python_module || !modules)) waiting.push_back(&library);
    }
    std::set<std::string> paths;
    while (!waiting.empty()) {
      const auto* library = waiting.back();
      waiting.pop_back();
      if (!paths.insert(library->path).second) continue;
      for (const auto& name : library->needed) {
        if (const auto found = by_name.find(name); found != by_name.end())
          waiting.push_back(found->second);
      }
    }
    return paths;
  }

  // A library without which another of the same make serves: of several that differ by numbers or
  // by cpu and cuda, one is chosen at run time.
  bool is_one_of_several(const LibraryFacts& library) {
    return std::ranges::any_of(wheel_.facts.libraries, [&](const LibraryFacts& other) {
      return &other != &library && other.loadable() &&
             library_family(other.path) == library_family(library.path) &&
             std::ranges::all_of(other.needed, [&](const std::string& name) {
               return !is_external(name) || suppliers_.brings(name) == Brought::yes;
             });
    });
  }

  bool is_external(const std::string& name) const {
    const auto& external = wheel_.verdicts.platform.external_libraries;
    return std::ranges::find(external, name) != external.end();
  }

  bool misses_libraries() {
    const auto must_load = opened();
    for (const auto& library : wheel_.facts.libraries) {
      if (!library.loadable() || library.machine != machine_.architecture) continue;
      const bool sure = must_load.contains(library.path);
      for (const auto& name : library.needed) {
        if (!is_external(name)) continue;
        const auto brought = suppliers_.brings(name);
        if (brought == Brought::yes) continue;
        if (misses_library(library, name, brought, sure)) return true;
      }
      if (sure && misses_versions(library)) return true;
    }
    return false;
  }

  bool misses_library(const LibraryFacts& library, const std::string& name, Brought brought,
                      bool sure) {
    const bool of_cuda = cuda_libraries().contains(name);
    const bool by_torch = machine_.torch && of_cuda;
    Reason reason{.why = by_torch                 ? Why::library_of_cuda
                         : brought == Brought::no ? Why::library_absent
                         : of_cuda                ? Why::library_of_later_torch
                                                  : Why::library_of_system,
                  .who = library.path,
                  .what = name,
                  .here = by_torch ? cell_.cuda : ""};
    if (!library.python_module && is_one_of_several(library)) return false;
    auto need = need_of_any_user(library, sure);
    if (need == Need::never) {
      verdict_.notes.push_back("an optional part does not load: " + base_name(library.path) +
                               " needs " + name);
      return false;
    }
    const auto obstacle = by_torch ? Obstacle::cuda : Obstacle::library;
    if (need == Need::always && brought == Brought::no) return stop(obstacle, std::move(reason));
    if (need == Need::depends && brought == Brought::no && !by_torch)
      reason.why = Why::library_unopened;
    doubt(obstacle, std::move(reason));
    return false;
  }

  // Of a library that modules need, the surest of the modules counts.
  Need need_of_any_user(const LibraryFacts& library, bool sure) const {
    auto need = need_of(library, sure);
    if (library.python_module) return need;
    bool used = false;
    auto most = Need::never;
    for (const auto& user : wheel_.facts.libraries) {
      if (!user.python_module || !leads_to(user, library)) continue;
      used = true;
      most = std::max(most, need_of(user, true));
    }
    return used ? std::max(most, need == Need::depends ? Need::never : need) : need;
  }

  bool leads_to(const LibraryFacts& user, const LibraryFacts& wanted) const {
    std::set<const LibraryFacts*> seen{&user};
    std::vector<const LibraryFacts*> waiting{&user};
    while (!waiting.empty()) {
      const auto* next = waiting.back();
      waiting.pop_back();
      if (next == &wanted) return true;
      for (const auto& other : wheel_.facts.libraries) {
        const auto& name = other.soname.empty() ? base_name(other.path) : other.soname;
        if ((std::ranges::find(next->needed, name) != next->needed.end() ||
             std::ranges::find(next->needed, base_name(other.path)) != next->needed.end()) &&
            seen.insert(&other).second)
          waiting.push_back(&other);
      }
    }
    return false;
  }

  // Versions of symbols that the system's libraries do not have: libstdc++'s for one.
  bool misses_versions(const LibraryFacts& library) {
    if (!surroundings_.system_library) {
      doubt_versions(library);
      return false;
    }
    for (const auto& [name, versions] : library.version_needs) {
      if (!is_platform_library(name)) continue;
      const auto* provider = surroundings_.system_library(name);
      if (!provider || provider->version_definitions.empty()) continue;
      for (const auto& version : versions) {
        if (provider->version_definitions.contains(version)) continue;
        return stop(
            Obstacle::system,
            {.why = Why::symbol_version, .who = library.path, .what = name, .version = version});
      }
    }
    return false;
  }

  bool brings(const std::string& name) const {
    return std::ranges::any_of(wheel_.facts.libraries, [&](const LibraryFacts& library) {
      return base_name(library.path) == name;
    });
  }

  // Of a machine that was saved, the C library alone is known: a system has what came out with
  // that.
  void doubt_versions(const LibraryFacts& library) {
    if (machine_.libc != "glibc") return;
    for (const auto& [name, versions] : library.version_needs) {
      if (!is_platform_library(name) || brings(name)) continue;
      for (const auto& version : versions) {
        if (!older(machine_.libc_version, glibc_beside(version, machine_.architecture))) continue;
        doubt(Obstacle::library, {.why = Why::symbol_version_unsure,
                                  .who = library.path,
                                  .what = name,
                                  .version = version,
                                  .here = machine_.libc_version});
      }
    }
  }

  // A runtime of its own; those that it needs from elsewhere are libraries like others.
  bool misses_runtime() {
    if (!machine_.torch || !uses_torch()) return false;
    auto reason =
        cell_.cuda == "cpu" ? why_not_without_cuda(wheel_) : why_not_runtime(wheel_, cell_);
    if (!reason || reason.why == Why::runtime_unknown || reason.why == Why::runtime_other)
      return false;
    if (reason.why == Why::cpu_torch && suppliers_.brings(reason.what) == Brought::yes)
      return false;
    return stop(Obstacle::cuda, std::move(reason));
  }

  bool misses_driver() {
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
  bool misses_unknown_driver() {
    const auto runtime =
        std::ranges::find_if(wheel_.facts.libraries, [](const LibraryFacts& library) {
          return library.in_part && library.cudart_version == "";
        });
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

  bool may_have_device_code() const {
    if (wheel_.verdicts.cuda.runtime != CudaRuntime::none || claims_.claims_cuda) return true;
    return std::ranges::any_of(wheel_.facts.libraries, [](const LibraryFacts& library) {
      return library.role == Role::device ||
             std::ranges::any_of(library.needed, [](const std::string& name) {
               return name == "libcuda.so.1" || cuda_libraries().contains(name);
             });
    });
  }

  bool misses_gpus() {
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

  const Item& wheel_;
  const WheelClaims& claims_;
  const MachineFacts& machine_;
  const Surroundings& surroundings_;
  Cell cell_;
  TorchRequirements requirements_;
  Suppliers suppliers_;
  FitVerdict& verdict_;
  std::set<std::string_view> inside_;  // symbols that the wheel defines
  Obstacle open_obstacle_ = Obstacle::none;
  Reason open_question_;
};

// Why no tag of the wheel is one of the machine's.
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

FitVerdict fit_by_name(const WheelClaims& claims, const std::string& file,
                       const MachineFacts& machine) {
  const auto& tags = machine.python->tags;
  for (const auto& tag : claims.file_name_tags) {
    if (std::ranges::find(tags, tag) == tags.end()) continue;
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

FitVerdict fit(const Item& wheel, const MachineFacts& machine, const Surroundings& surroundings) {
  if (!wheel.facts.wheel)
    return {.file = wheel.facts.file,
            .fits = Fits::fails,
            .obstacle = Obstacle::unreadable,
            .reason = {.why = Why::not_a_wheel}};
  auto verdict = fit_by_name(*wheel.facts.wheel, wheel.facts.file, machine);
  if (verdict.fits == Fits::works) CandidateJudge(wheel, machine, surroundings, verdict).run();
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

const char* name_of(Fits fits) {
  return fits == Fits::works ? "works" : fits == Fits::depends ? "depends" : "fails";
}

const char* name_of(Obstacle obstacle) {
  static constexpr const char* names[] = {"none",  "unreadable", "system", "python", "torch",
                                          "numpy", "library",    "cuda",   "driver", "gpu"};
  return names[static_cast<std::size_t>(obstacle)];
}

}  // namespace wheelscope
