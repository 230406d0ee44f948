// Judges CUDA facts by NVIDIA's compatibility rules.
//
// SASS runs on its own architecture and on later ones of the same major version (8.0 on 8.6); with
// suffix `a` only on its own, with `f` on its family (the same major version, from it on). Jetson
// boards and the other GPUs do not take each other's SASS; a Jetson takes none but its own. PTX is
// compiled by the driver for any later GPU; PTX with a suffix is bound like SASS, and the driver
// must be as new as the PTX. A CUDA runtime needs the first driver of its major version. Libraries
// that need libcudart of different majors are alternatives, of which one is loaded: the wheel's
// oldest driver is the oldest that any of them works with.
//
// A wheel serves a GPU as well as the weakest of its libraries that hold device code: users meet
// "no kernel image" in that one. Loose cubins, PTX files and fat binaries are picked by the program
// that ships them, so all of them together count as one library. Static libraries and object
// files run nowhere before they are linked.
#include "verdicts/verdicts.h"

#include <algorithm>
#include <tuple>

#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {
namespace {

struct Target {
  int major = 0, minor = 0;
  char suffix = 0;
};

Target parse(const std::string& text) {
  int number = 0;
  for (const char c : text) {
    if (c >= '0' && c <= '9' && number < 100000) number = number * 10 + (c - '0');
  }
  const char last = text.empty() ? '\0' : text.back();
  return {number / 10, number % 10, last == 'a' || last == 'f' ? last : '\0'};
}

// True for the target of a Jetson board.
bool is_tegra(const Target& target) {
  return std::ranges::any_of(cuda_table().gpus, [&](const CudaTable::Gpu& gpu) {
    const auto own = parse(gpu.capability), former = parse(gpu.former_capability);
    return gpu.tegra && ((target.major == own.major && target.minor == own.minor) ||
                         (target.major == former.major && target.minor == former.minor));
  });
}

using Libraries = std::vector<const LibraryFacts*>;

// Returns the CUDA version of libcudart.so.12, libcudart-1a2b3c4d.so.12 or libcudart.so.10.2; since
// CUDA 11 only the major one, as one library serves it all. Empty for another library.
std::string cudart_version(const std::string& needed) {
  const auto at = needed.find(".so.");
  if (!needed.starts_with("libcudart") || at == needed.npos) return {};
  if (at != 9 && needed[9] != '-') return {};
  const auto version = needed.substr(at + 4);
  const auto dot = version.find('.');
  auto major = version.substr(0, dot);
  if (dot == version.npos || cuda_table().drivers.contains(major)) return major;
  return version.substr(0, version.find('.', dot + 1));
}

std::optional<std::string> driver_of_runtime(const std::string& version) {
  const auto& table = cuda_table();
  if (const auto found = table.drivers.find(major_of(version)); found != table.drivers.end())
    return found->second;
  if (const auto found = table.toolkit_drivers.find(version); found != table.toolkit_drivers.end())
    return found->second;
  return std::nullopt;
}

// Returns the versions of libcudart that libraries need, oldest first.
std::vector<std::string> dynamic_versions(const Libraries& libraries) {
  std::set<std::string> versions;
  for (const auto* library : libraries) {
    for (const auto& name : library->needed) versions.insert(cudart_version(name));
  }
  versions.erase("");
  std::vector<std::string> sorted(versions.begin(), versions.end());
  std::ranges::sort(sorted, older);
  return sorted;
}

void judge_runtime(const Libraries& libraries, CudaVerdict& verdict) {
  std::vector<std::string> fixed;
  std::set<std::string> loose;  // toolkits that made loose files of device code
  bool found_static = false;
  for (const auto* library : libraries) {
    for (const auto& name : library->needed) {
      if (!cudart_version(name).empty())
        verdict.evidence.push_back(library->path + " needs " + name);
    }
    if (!library->toolkit.empty() && library->role == Role::device)
      loose.insert(library->toolkit);
    else if (!library->toolkit.empty())
      verdict.evidence.push_back(library->path + ": device code built by CUDA " + library->toolkit);
    if (!library->cudart_version) continue;
    found_static = true;
    if (!library->cudart_version->empty()) fixed.push_back(*library->cudart_version);
    for (const auto& sentence : library->cudart_evidence)
      verdict.evidence.push_back(library->path + ": " + sentence);
  }
  for (const auto& toolkit : loose)
    verdict.evidence.push_back("loose device code built by CUDA " + toolkit);
  verdict.runtime_choices = dynamic_versions(libraries);
  if (!verdict.runtime_choices.empty()) {
    verdict.runtime = CudaRuntime::dynamic;
    verdict.runtime_version = verdict.runtime_choices.front();
    verdict.min_driver = driver_of_runtime(*verdict.runtime_version);
  } else if (found_static) {
    verdict.runtime = CudaRuntime::linked_statically;
    if (!fixed.empty()) verdict.runtime_version = *std::ranges::max_element(fixed, older);
  }
  for (const auto& version : fixed) {  // a static runtime is always used
    const auto driver = driver_of_runtime(version);
    if (driver && (!verdict.min_driver || older(*verdict.min_driver, *driver)))
      verdict.min_driver = driver;
  }
}

// Adds the device code of a library to sums by target.
using Sums = std::map<std::tuple<CodeKind, std::string, std::string, bool>, DeviceTarget>;

void add_up(const LibraryFacts& library, Sums& sums) {
  for (const auto& code : library.device_code) {
    auto& sum = sums[{code.kind, code.target, code.compression, code.relocatable}];
    const auto before = sum;
    sum = code;
    sum.count += before.count;
    sum.bytes += before.bytes;
    sum.uncompressed_bytes += before.uncompressed_bytes;
    if (older(sum.isa, before.isa)) sum.isa = before.isa;
  }
}

std::vector<DeviceTarget> in_order(const Sums& sums) {
  std::vector<DeviceTarget> targets;
  for (const auto& [key, sum] : sums) targets.push_back(sum);
  std::ranges::stable_sort(targets, [](const DeviceTarget& a, const DeviceTarget& b) {
    if (a.kind != b.kind) return a.kind < b.kind;
    return a.target != b.target && target_before(a.target, b.target);
  });
  return targets;
}

std::vector<std::string> names(const std::vector<DeviceTarget>& targets, CodeKind kind) {
  std::vector<std::string> list;
  for (const auto& code : targets) {
    if (code.kind == kind && (list.empty() || list.back() != code.target))
      list.push_back(code.target);
  }
  return list;
}

// Device code that is loaded as a whole: one library, or all loose files.
struct Unit {
  std::string name;
  Sums sums;
  std::vector<FatbinGroup> fatbins;
  const LibraryFacts* library = nullptr;  // none: loose files
};

std::vector<Unit> units_of(const Libraries& libraries) {
  std::vector<Unit> units;
  Unit loose;
  std::uint64_t loose_files = 0;
  for (const auto* library : libraries) {
    if (library->fatbins.empty()) continue;
    if (library->loadable()) {
      auto& unit = units.emplace_back(
          Unit{.name = library->path, .fatbins = library->fatbins, .library = library});
      add_up(*library, unit.sums);
    } else if (library->role == Role::device) {
      ++loose_files;
      add_up(*library, loose.sums);
      loose.name = library->path;
    }
  }
  if (loose_files > 1) loose.name = counted(loose_files, "loose file") + " of device code";
  if (loose_files > 0) units.push_back(std::move(loose));
  return units;
}

// Returns the oldest driver that compiles the PTX for `target`: one as new as the newest PTX text
// for it.
std::optional<std::string> driver_for_ptx(const std::vector<DeviceTarget>& targets,
                                          const std::string& target,
                                          std::optional<std::string> driver) {
  for (const auto& code : targets) {
    if (code.kind != CodeKind::ptx || code.target != target) continue;
    const auto found = cuda_table().ptx_drivers.find(code.isa);
    if (found == cuda_table().ptx_drivers.end()) return std::nullopt;
    if (!driver || older(*driver, found->second)) driver = found->second;
  }
  return driver;
}

bool serves(const FatbinGroup& group, const std::string& capability) {
  return choose({group.sass.begin(), group.sass.end()}, {group.ptx.begin(), group.ptx.end()},
                capability)
             .served != Served::no;
}

// Returns, of the targets that serve the GPU, the last and those equally near.
std::vector<std::string> nearest_of(std::vector<std::string> targets,
                                    bool (*target_serves)(const std::string&, const std::string&),
                                    const std::string& capability) {
  std::erase_if(targets,
                [&](const std::string& target) { return !target_serves(target, capability); });
  if (targets.empty()) return targets;
  std::ranges::stable_sort(targets, target_before);
  const auto best = parse(targets.back());
  std::erase_if(targets, [&](const std::string& target) {
    const auto one = parse(target);
    return one.major != best.major || one.minor != best.minor;
  });
  return targets;
}

GpuVerdict judge_gpu(const std::vector<DeviceTarget>& targets,
                     const std::vector<FatbinGroup>& fatbins,
                     const std::optional<std::string>& runtime_driver, const CudaTable::Gpu& gpu) {
  GpuVerdict verdict{.name = gpu.name, .capability = gpu.capability};
  const auto choice =
      choose(names(targets, CodeKind::sass), names(targets, CodeKind::ptx), gpu.capability);
  verdict.served = choice.served;
  if (choice.served == Served::native) {
    verdict.by = spelled(CodeKind::sass, choice.targets.back());
    verdict.min_driver = runtime_driver;
  } else if (choice.served == Served::jit) {
    verdict.by = spelled(CodeKind::ptx, choice.targets.back());
    verdict.min_driver = driver_for_ptx(targets, choice.targets.back(), runtime_driver);
  }
  if (verdict.min_driver && older(*verdict.min_driver, gpu.driver)) verdict.min_driver = gpu.driver;
  for (const auto& group : fatbins) {
    verdict.fatbins += group.count;
    if (!serves(group, gpu.capability)) verdict.fatbins_unserved += group.count;
  }
  return verdict;
}

std::vector<LibraryCudaVerdict> judge_units(const Libraries& libraries,
                                            const std::optional<std::string>& runtime_driver) {
  std::vector<LibraryCudaVerdict> verdicts;
  for (const auto& unit : units_of(libraries)) {
    auto& verdict = verdicts.emplace_back();
    verdict.library = unit.name;
    verdict.targets = in_order(unit.sums);
    for (const auto& gpu : cuda_table().gpus)
      verdict.gpus.push_back(judge_gpu(verdict.targets, unit.fatbins, runtime_driver, gpu));
  }
  return verdicts;
}

// Returns for each GPU the verdict of the library that serves it worst; among equals, of the one
// that needs the newest driver.
std::vector<GpuVerdict> weakest(const std::vector<LibraryCudaVerdict>& libraries) {
  std::vector<GpuVerdict> gpus;
  for (const auto& library : libraries) {
    for (std::size_t i = 0; i < library.gpus.size(); ++i) {
      auto gpu = library.gpus[i];
      gpu.library = library.library;
      if (i == gpus.size()) {
        gpus.push_back(std::move(gpu));
        continue;
      }
      const bool needs_more = gpu.served == gpus[i].served &&
                              older(gpus[i].min_driver.value_or(""), gpu.min_driver.value_or(""));
      if (gpu.served < gpus[i].served || needs_more) gpus[i] = std::move(gpu);
    }
  }
  return gpus;
}

}  // namespace

bool target_before(const std::string& a, const std::string& b) {
  const auto left = parse(a), right = parse(b);
  return std::tie(left.major, left.minor, left.suffix) <
         std::tie(right.major, right.minor, right.suffix);
}

bool sass_serves(const std::string& target, const std::string& capability) {
  const auto code = parse(target), gpu = parse(capability);
  const bool tegra = is_tegra(gpu);
  if (code.major != gpu.major || is_tegra(code) != tegra) return false;
  const bool exact = code.suffix == 'a' || tegra;
  return exact ? code.minor == gpu.minor : code.minor <= gpu.minor;
}

bool ptx_serves(const std::string& target, const std::string& capability) {
  const auto code = parse(target), gpu = parse(capability);
  if (code.suffix == 'a') return code.major == gpu.major && code.minor == gpu.minor;
  if (code.suffix == 'f') return code.major == gpu.major && code.minor <= gpu.minor;
  return std::tie(code.major, code.minor) <= std::tie(gpu.major, gpu.minor);
}

Choice choose(const std::vector<std::string>& sass, const std::vector<std::string>& ptx,
              const std::string& capability) {
  if (auto native = nearest_of(sass, sass_serves, capability); !native.empty())
    return {Served::native, std::move(native)};
  if (auto jit = nearest_of(ptx, ptx_serves, capability); !jit.empty())
    return {Served::jit, std::move(jit)};
  return {};
}

CudaVerdict judge_cuda(const std::vector<LibraryFacts>& libraries) {
  Libraries all;
  Sums sums;
  for (const auto& library : libraries) {
    all.push_back(&library);
    add_up(library, sums);
  }
  CudaVerdict verdict;
  judge_runtime(all, verdict);
  verdict.targets = in_order(sums);
  verdict.sass = names(verdict.targets, CodeKind::sass);
  verdict.ptx = names(verdict.targets, CodeKind::ptx);
  verdict.libraries = judge_units(all, verdict.min_driver);
  if (verdict.libraries.empty() && !verdict.targets.empty()) {  // only code to be linked
    for (const auto& gpu : cuda_table().gpus)
      verdict.gpus.push_back(judge_gpu(verdict.targets, {}, verdict.min_driver, gpu));
    return verdict;
  }
  if (verdict.runtime_choices.size() < 2) {
    verdict.gpus = weakest(verdict.libraries);
    return verdict;
  }
  for (const auto& version : verdict.runtime_choices) {
    auto loaded = all;  // with this version of libcudart
    std::erase_if(loaded, [&](const LibraryFacts* library) {
      const auto needed = dynamic_versions({library});
      return !needed.empty() && !contains(needed, version);
    });
    CudaVerdict with_this_one;
    judge_runtime(loaded, with_this_one);
    const auto gpus = weakest(judge_units(loaded, with_this_one.min_driver));
    if (verdict.gpus.empty()) verdict.gpus = gpus;
    for (std::size_t i = 0; i < std::min(gpus.size(), verdict.gpus.size()); ++i) {
      if (gpus[i].served > verdict.gpus[i].served) verdict.gpus[i] = gpus[i];
    }
  }
  return verdict;
}

}  // namespace wheelscope
