// Asks one question after the other, and ends at the first obstacle.
#include "answers/fit.h"

#include <algorithm>
#include <ranges>

#include "answers/providers.h"
#include "packaging/marker.h"
#include "packaging/specifier.h"
#include "packaging/tag.h"
#include "tables/tables.h"
#include "text/dotted_version.h"
#include "text/text.h"
#include "verdicts/cuda.h"
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
    if (is_damaged() || misses_system() || misses_python() || misses_torch() ||
        misses_libraries() || misses_runtime() || misses_driver() || misses_gpus())
      return;
    if (!open_question_.empty()) {
      verdict_.fits = Fits::depends;
      verdict_.obstacle = Obstacle::library;
      verdict_.reason = open_question_;
      verdict_.change = open_change_;
    }
  }

 private:
  bool stop(Obstacle obstacle, std::string reason, std::string change = {},
            Fits fits = Fits::fails) {
    verdict_.fits = fits;
    verdict_.obstacle = obstacle;
    verdict_.reason = std::move(reason);
    verdict_.change = std::move(change);
    return true;
  }

  // Problems that keep an installer or the loader from using the file.
  bool is_damaged() {
    for (const auto& problem : wheel_.facts.problems.listed) {
      if (!problem.id.starts_with("zip-") && !problem.id.starts_with("wheel-")) continue;
      return stop(Obstacle::unreadable,
                  (problem.place.empty() ? "" : problem.place + ": ") + problem.what);
    }
    return false;
  }

  bool misses_system() {
    const auto& platform = wheel_.verdicts.platform;
    if (machine_.libc == "glibc" && older(machine_.libc_version, platform.glibc)) {
      const auto first = platform.because.empty() ? "" : ": " + platform.because.front();
      return stop(Obstacle::system,
                  "it needs glibc " + platform.glibc + ", whatever its tag says" + first,
                  "a system with glibc " + platform.glibc + " or newer");
    }
    return false;
  }

  bool misses_python() {
    auto reason = why_not_python(wheel_, cell_);
    if (reason.empty()) return false;
    if (const auto other = module_of_another_python(); !other.empty())
      return stop(Obstacle::python, other + " is for another Python; other modules are for any",
                  "another Python, if that module is needed", Fits::depends);
    if (!goes_beyond_limited_api())
      return stop(Obstacle::python, std::move(reason), "another Python");
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
        bound = base_name(library.path);
    }
    return others ? bound : "";
  }

  // Its tag is for later Pythons, but its modules need what the limited API does not promise them.
  bool goes_beyond_limited_api() const {
    const auto& python = wheel_.verdicts.python;
    return python.abi == PythonAbi::version &&
           std::ranges::any_of(claims_.file_name_tags,
                               [](const auto& tag) { return split_tag(tag).abi == "abi3"; }) &&
           std::ranges::none_of(python.because, [](const std::string& sentence) {
             return sentence.starts_with("a file is named for");
           });
  }

  bool misses_private_symbols() {
    for (const auto& library : wheel_.facts.libraries) {
      for (const auto& [symbol, needed] : library.python_symbols) {
        if (!needed || python_abi3().contains(symbol)) continue;
        const auto what = base_name(library.path) + " needs " + symbol;
        if (!surroundings_.python_has)
          return stop(Obstacle::python,
                      what + ", which the limited API does not promise later Pythons",
                      "ask on the machine itself", Fits::depends);
        if (!surroundings_.python_has(symbol))
          return stop(Obstacle::python, what + ", which this Python does not have",
                      "another Python");
      }
    }
    return false;
  }

  bool uses_torch() const {
    return wheel_.verdicts.torch.abi != TorchAbi::none ||
           std::ranges::any_of(wheel_.facts.libraries, [](const LibraryFacts& library) {
             return std::ranges::any_of(library.needed, is_torch_library);
           });
  }

  bool misses_torch() {
    if (!machine_.torch) return uses_torch() && misses_any_torch();
    const auto& torch = *machine_.torch;
    if (auto reason = requirements_.why_not(cell_); !reason.empty())
      return stop(
          Obstacle::torch, reason + "; torch " + torch.version + " is here",
          requirements_.exact().empty() ? "another torch" : "torch " + requirements_.exact());
    if (surroundings_.torch_has) return misses_symbols();
    auto reason = why_not_torch(wheel_, cell_, requirements_);
    if (reason.empty()) return false;
    const bool cannot_tell = reason.find("does not say of which torch") != reason.npos;
    return stop(Obstacle::torch, std::move(reason), cannot_tell ? "" : "another torch",
                cannot_tell ? Fits::depends : Fits::fails);
  }

  bool misses_any_torch() {
    if (requirements_.empty())
      return stop(Obstacle::torch,
                  "it needs torch, which is not here and which it does not require",
                  "pip install torch");
    const auto exact = requirements_.exact();
    if (exact.empty() && wheel_.verdicts.torch.abi == TorchAbi::cxx)
      return stop(Obstacle::torch,
                  "it is bound to torch's C++ ABI and does not say of which torch; none is here",
                  "say which torch it will meet: --with torch==VERSION", Fits::depends);
    verdict_.notes.push_back("installs torch" + (exact.empty() ? "" : " " + exact));
    return false;
  }

  // What torch's own libraries do not define, and no library of the wheel does.
  bool misses_symbols() {
    std::set<std::string_view> inside;
    for (const auto& library : wheel_.facts.libraries) {
      for (const auto& symbol : library.symbols) {
        if (symbol.defined) inside.insert(symbol.name);
      }
    }
    for (const auto& library : wheel_.facts.libraries) {
      if (!std::ranges::any_of(library.needed, is_torch_library) && !library.python_module)
        continue;
      for (const auto& [symbol, needed] : library.torch_symbols) {
        if (!needed || inside.contains(symbol) || surroundings_.torch_has(symbol)) continue;
        return stop(
            Obstacle::torch,
            base_name(library.path) + " needs " + demangle(symbol) + ", which torch " +
                machine_.torch->version + " here does not have",
            requirements_.exact().empty() ? "another torch" : "torch " + requirements_.exact());
      }
    }
    return false;
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

  bool misses_libraries() {
    const auto must_load = opened();
    const auto& external = wheel_.verdicts.platform.external_libraries;
    for (const auto& library : wheel_.facts.libraries) {
      if (!library.loadable() || library.machine != machine_.architecture) continue;
      const bool sure = must_load.contains(library.path);
      for (const auto& name : library.needed) {
        if (std::ranges::find(external, name) == external.end()) continue;
        const auto brought = suppliers_.brings(name);
        if (brought == Brought::yes) continue;
        const bool by_torch = machine_.torch && cuda_libraries().contains(name);
        const auto reason =
            base_name(library.path) + " needs " + name +
            (by_torch ? "; torch brings " + (cell_.cuda == "cpu" ? "no CUDA" : "CUDA " + cell_.cuda)
             : brought == Brought::no          ? ", which nothing here brings"
             : cuda_libraries().contains(name) ? ", which the torch to be installed may bring"
                                               : ", which the system would have to have");
        if (sure && brought == Brought::no)
          return stop(by_torch ? Obstacle::cuda : Obstacle::library, reason,
                      suppliers_.who_has(name));
        if (open_question_.empty()) {
          open_question_ = reason;
          open_change_ = brought == Brought::unknown && cuda_libraries().contains(name)
                             ? "say which torch it will meet: --with torch==VERSION"
                             : suppliers_.who_has(name);
        }
      }
      if (sure && misses_versions(library)) return true;
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
        return stop(Obstacle::system,
                    base_name(library.path) + " needs " + version + " of " + name +
                        ", which this system's does not have",
                    "a newer " + name);
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
      if (!is_platform_library(name) || brings(name) || !open_question_.empty()) continue;
      for (const auto& version : versions) {
        if (!older(machine_.libc_version, glibc_beside(version, machine_.architecture))) continue;
        open_question_ = base_name(library.path) + " needs " + version + " of " + name +
                         ", which a system with glibc " + machine_.libc_version + " need not have";
        open_change_ = "a newer " + name + ", or ask on the machine itself";
      }
    }
  }

  bool misses_runtime() {
    if (!machine_.torch || !uses_torch()) return false;
    auto reason =
        cell_.cuda == "cpu" ? why_not_without_cuda(wheel_) : why_not_runtime(wheel_, cell_);
    if (reason.empty() || reason.find("cannot be told") != reason.npos) return false;
    return stop(Obstacle::cuda, std::move(reason), "a torch for another CUDA");
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
                  "it needs driver " + *cuda.min_driver + "; " + machine_.driver + " is here",
                  "driver " + *cuda.min_driver + " or newer");
    return misses_unknown_driver();
  }

  // A runtime was found by what it needs, and its version not read. The newest drivers do for any.
  bool misses_unknown_driver() {
    const auto runtime =
        std::ranges::find_if(wheel_.facts.libraries, [](const LibraryFacts& library) {
          return library.in_part && library.cudart_version == "";
        });
    const auto drivers = std::views::values(cuda_table().drivers);
    const auto newest = *std::ranges::max_element(drivers, older);
    if (runtime == wheel_.facts.libraries.end() || !older(machine_.driver, newest)) return false;
    return stop(Obstacle::driver,
                base_name(runtime->path) +
                    " has a CUDA runtime inside; which driver that needs is not known without "
                    "--deep; " +
                    machine_.driver + " is here",
                "ask again with --deep; any runtime works with driver " + newest, Fits::depends);
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
        return stop(Obstacle::gpu,
                    base_name(judged->library) + " has no code for " + gpu.name + " (" +
                        gpu.capability + "): a call of its kernels fails",
                    "another GPU, or a build for " + gpu.capability);
      if (judged->min_driver && older(machine_.driver, *judged->min_driver))
        return stop(Obstacle::driver,
                    "for " + gpu.name + " it needs driver " + *judged->min_driver + "; " +
                        machine_.driver + " is here",
                    "driver " + *judged->min_driver + " or newer");
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
  std::string open_question_, open_change_;
};

// Why no tag of the wheel is one of the machine's.
FitVerdict other_tags(const WheelClaims& claims, const std::string& file,
                      const MachineFacts& machine) {
  FitVerdict verdict{.file = file, .fits = Fits::fails};
  const Item item{.facts = {.file = file, .wheel = claims}};
  const auto cell = cell_of(machine);
  verdict.obstacle = Obstacle::system;
  verdict.reason = machine.libc == "musl" ? "" : why_not_arch(item, cell);
  if (!verdict.reason.empty()) return verdict;
  bool python = false;
  std::string oldest;  // C library among its tags
  for (const auto& text : claims.file_name_tags) {
    const auto tag = split_tag(text);
    python |= admits(tag, PythonBuild(cell.python));
    if (oldest.empty() || promises_more(tag.platform, oldest)) oldest = tag.platform;
  }
  if (python) {
    verdict.reason = "its tag is for a newer or another system: " + oldest + "; here is " +
                     machine.libc + " " + machine.libc_version;
    verdict.change = "another system";
  } else {
    verdict.obstacle = Obstacle::python;
    verdict.reason = "its tag is not for Python " + cell.python;
    verdict.change = "another Python";
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
    verdict.reason = "it requires Python " + claims.requires_python;
    verdict.change = "another Python";
    return verdict;
  }
  return other_tags(claims, file, machine);
}

FitVerdict fit(const Item& wheel, const MachineFacts& machine, const Surroundings& surroundings) {
  if (!wheel.facts.wheel)
    return {.file = wheel.facts.file,
            .fits = Fits::fails,
            .obstacle = Obstacle::unreadable,
            .reason = "it is not a wheel"};
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
  switch (obstacle) {
    case Obstacle::unreadable:
      return "unreadable";
    case Obstacle::system:
      return "system";
    case Obstacle::python:
      return "python";
    case Obstacle::torch:
      return "torch";
    case Obstacle::library:
      return "library";
    case Obstacle::cuda:
      return "cuda";
    case Obstacle::driver:
      return "driver";
    case Obstacle::gpu:
      return "gpu";
    default:
      return "none";
  }
}

}  // namespace wheelscope
