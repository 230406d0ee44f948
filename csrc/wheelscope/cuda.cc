// Judges CUDA facts by NVIDIA's compatibility rules.
//
// SASS runs on its own architecture and on later ones of the same major version (8.0 on 8.6); with
// suffix `a` only on its own, with `f` on its family (the same major version, from it on); a Jetson
// board takes none but its own. PTX is compiled by the driver for any later GPU; PTX with a suffix
// is bound like SASS, and the driver must be as new as the PTX. A CUDA runtime needs the first
// driver of its major version. Libraries that need libcudart of different majors are alternatives,
// of which one is loaded: the wheel's oldest driver is the oldest that any of them works with.
#include "cuda.h"

#include <algorithm>
#include <tuple>

#include "tables.h"
#include "version.h"

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

bool by_target(const std::string& a, const std::string& b) {
  const auto left = parse(a), right = parse(b);
  return std::tie(left.major, left.minor, left.suffix) <
         std::tie(right.major, right.minor, right.suffix);
}

using Libraries = std::vector<const LibraryFacts*>;

// The CUDA version that libcudart.so.12, libcudart-1a2b3c4d.so.12 or libcudart.so.10.2 is for;
// since CUDA 11 the major alone, as one library serves it all. Empty: another library.
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
  if (const auto found = table.drivers.find(version.substr(0, version.find('.')));
      found != table.drivers.end())
    return found->second;
  if (const auto found = table.toolkit_drivers.find(version); found != table.toolkit_drivers.end())
    return found->second;
  return std::nullopt;
}

// The versions of libcudart that libraries need, oldest first.
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
  bool found_static = false;
  for (const auto* library : libraries) {
    for (const auto& name : library->needed) {
      if (!cudart_version(name).empty())
        verdict.evidence.push_back(library->path + " needs " + name);
    }
    if (!library->toolkit.empty())
      verdict.evidence.push_back(library->path + ": device code built by CUDA " + library->toolkit);
    if (!library->cudart_version) continue;
    found_static = true;
    if (!library->cudart_version->empty()) fixed.push_back(*library->cudart_version);
    for (const auto& sentence : library->cudart_evidence)
      verdict.evidence.push_back(library->path + ": " + sentence);
  }
  verdict.runtime_choices = dynamic_versions(libraries);
  if (!verdict.runtime_choices.empty()) {
    verdict.runtime = "dynamic";
    verdict.runtime_version = verdict.runtime_choices.front();
    verdict.min_driver = driver_of_runtime(*verdict.runtime_version);
  } else if (found_static) {
    verdict.runtime = "static";
    if (!fixed.empty()) verdict.runtime_version = *std::ranges::max_element(fixed, older);
  }
  for (const auto& version : fixed) {  // a runtime inside a library comes with it in any case
    const auto driver = driver_of_runtime(version);
    if (driver && (!verdict.min_driver || older(*verdict.min_driver, *driver)))
      verdict.min_driver = driver;
  }
}

void judge_targets(const Libraries& libraries, CudaVerdict& verdict) {
  std::map<std::tuple<std::string, std::string, std::string, bool>, DeviceTarget> groups;
  std::set<std::string> sass, ptx;
  for (const auto* library : libraries) {
    for (const auto& code : library->device_code) {
      auto& group = groups[{code.kind, code.target, code.compression, code.relocatable}];
      const auto sum = group;
      group = code;
      group.count += sum.count;
      group.bytes += sum.bytes;
      group.uncompressed_bytes += sum.uncompressed_bytes;
      if (older(group.isa, sum.isa)) group.isa = sum.isa;
      (code.kind == "ptx" ? ptx : sass).insert(code.target);
    }
  }
  for (auto& [key, group] : groups) verdict.targets.push_back(group);
  std::ranges::sort(verdict.targets, [](const DeviceTarget& a, const DeviceTarget& b) {
    if (a.kind != b.kind) return a.kind > b.kind;
    if (a.target != b.target) return by_target(a.target, b.target);
    return std::tie(a.compression, a.relocatable) < std::tie(b.compression, b.relocatable);
  });
  verdict.sass.assign(sass.begin(), sass.end());
  verdict.ptx.assign(ptx.begin(), ptx.end());
  std::ranges::sort(verdict.sass, by_target);
  std::ranges::sort(verdict.ptx, by_target);
}

// The oldest driver that compiles the PTX for `target`: one as new as the newest of its texts.
std::optional<std::string> driver_for_ptx(const CudaVerdict& verdict, const std::string& target) {
  auto driver = verdict.min_driver;
  for (const auto& code : verdict.targets) {
    if (code.kind != "ptx" || code.target != target) continue;
    const auto found = cuda_table().ptx_drivers.find(code.isa);
    if (found == cuda_table().ptx_drivers.end()) return std::nullopt;
    if (!driver || older(*driver, found->second)) driver = found->second;
  }
  return driver;
}

GpuVerdict judge_gpu(const CudaVerdict& verdict, const CudaTable::Gpu& gpu) {
  GpuVerdict entry{.name = gpu.name, .capability = gpu.capability, .served = "no"};
  for (const auto& target : verdict.ptx) {  // in order: the last is the nearest
    if (ptx_serves(target, gpu.capability))
      entry = {gpu.name, gpu.capability, "jit", "compute_" + target,
               driver_for_ptx(verdict, target)};
  }
  for (const auto& target : verdict.sass) {
    if (sass_serves(target, gpu.capability, gpu.tegra))
      entry = {gpu.name, gpu.capability, "native", "sm_" + target, verdict.min_driver};
  }
  if (entry.min_driver && older(*entry.min_driver, gpu.driver)) entry.min_driver = gpu.driver;
  return entry;
}

CudaVerdict judge_together(const Libraries& libraries) {
  CudaVerdict verdict;
  judge_runtime(libraries, verdict);
  judge_targets(libraries, verdict);
  if (verdict.targets.empty()) return verdict;
  for (const auto& gpu : cuda_table().gpus) verdict.gpus.push_back(judge_gpu(verdict, gpu));
  return verdict;
}

int rank(const GpuVerdict& gpu) {
  return gpu.served == "native" ? 2 : gpu.served == "jit" ? 1 : 0;
}

}  // namespace

bool sass_serves(const std::string& target, const std::string& capability, bool tegra) {
  const auto code = parse(target), gpu = parse(capability);
  if (code.major != gpu.major) return false;
  const bool exact = code.suffix == 'a' || tegra;
  return exact ? code.minor == gpu.minor : code.minor <= gpu.minor;
}

bool ptx_serves(const std::string& target, const std::string& capability) {
  const auto code = parse(target), gpu = parse(capability);
  if (code.suffix) return sass_serves(target, capability);
  return std::tie(code.major, code.minor) <= std::tie(gpu.major, gpu.minor);
}

CudaVerdict judge_cuda(const std::vector<LibraryFacts>& libraries) {
  Libraries all;
  for (const auto& library : libraries) all.push_back(&library);
  auto verdict = judge_together(all);
  if (verdict.runtime_choices.size() < 2) return verdict;
  verdict.gpus.clear();
  for (const auto& version : verdict.runtime_choices) {
    auto loaded = all;  // with this version of libcudart
    std::erase_if(loaded, [&](const LibraryFacts* library) {
      const auto needed = dynamic_versions({library});
      return !needed.empty() && std::ranges::find(needed, version) == needed.end();
    });
    const auto gpus = judge_together(loaded).gpus;
    if (verdict.gpus.empty()) verdict.gpus = gpus;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      if (rank(gpus[i]) > rank(verdict.gpus[i])) verdict.gpus[i] = gpus[i];
    }
  }
  return verdict;
}

}  // namespace wheelscope
