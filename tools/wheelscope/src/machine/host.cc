// Reads what the kernel, the C library's file and the NVIDIA driver say of a computer.
#include "machine/machine.h"

#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>

#include "loader/disk.h"
#include "source/source.h"
#include "source/system.h"
#include "text/text.h"

namespace wheelscope {
namespace {

namespace fs = std::filesystem;

// True for 580.65.06: digits and dots, at least one of each.
bool is_dotted_version(std::string_view word) {
  return !word.empty() && is_digit(word.front()) && is_digit(word.back()) &&
         word.find('.') != word.npos &&
         std::ranges::all_of(word, [](char c) { return is_digit(c) || c == '.'; });
}

std::string first_version_in(const std::string& text) {
  for (const auto& word : words_of(text)) {
    if (is_dotted_version(word)) return word;
  }
  return {};
}

// The file that a name leads to by ld.so.cache or the default folders.
std::string system_library(const std::string& root, const std::string& name,
                           const std::string& architecture) {
  std::error_code error;
  if (const auto cache = Source::map(root + "/etc/ld.so.cache")) {
    const auto entries = read_loader_cache(cache->bytes(), architecture);
    const auto found = entries.find(name);
    if (found != entries.end() && fs::exists(root + found->second, error))
      return root + found->second;
  }
  for (const auto& folder : default_folders(architecture)) {
    const auto path = root + folder + "/" + name;
    if (fs::exists(path, error)) return path;
  }
  return {};
}

// "GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36."
std::string glibc_version(const std::string& path) {
  constexpr std::string_view mark = " release version ";
  const auto file = Source::map(path);
  if (!file) return {};
  const auto text = file->bytes().text();
  for (auto at = text.find(mark); at != text.npos; at = text.find(mark, at + 1)) {
    auto version = text.substr(at + mark.size(), 16);
    version = version.substr(0, version.find_first_not_of("0123456789."));
    if (version.ends_with('.')) version.remove_suffix(1);
    if (is_dotted_version(version)) return std::string(version);
  }
  return {};
}

// musl's library is its loader too; among its texts is one that is its version and nothing else.
std::string musl_version(const std::string& path) {
  const auto file = Source::map(path);
  if (!file) return {};
  const auto text = file->bytes().text();
  for (auto at = text.find("1."); at != text.npos; at = text.find("1.", at + 1)) {
    const auto word = text.substr(at, std::min<std::size_t>(text.find('\0', at) - at, 16));
    if (at > 0 && text[at - 1] == '\0' && is_dotted_version(word) &&
        std::ranges::count(word, '.') == 2)
      return std::string(word);
  }
  return {};
}

void read_gpus(MachineFacts& machine) {
  auto program = find_program("nvidia-smi");
  for (const auto* place : {"/usr/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"}) {
    if (program.empty()) program = find_program(place);
  }
  if (program.empty()) {
    machine.notes.emplace_back(
        "nvidia-smi is not here: the compute capability of GPUs cannot be told");
  } else {
    constexpr int patience = 15;  // seconds; a driver that sleeps takes several to wake
    const auto list =
        output_of({program, "--query-gpu=name,compute_cap", "--format=csv,noheader"}, patience);
    if (list) {
      machine.gpus = parse_gpu_list(*list);
      return;
    }
    machine.notes.push_back(list.error().what + ": the compute capability of GPUs cannot be told");
  }
  machine.gpus = read_gpu_names("");
}

}  // namespace

void read_libc(const std::string& root, const std::string& interpreter, MachineFacts& machine) {
  const auto musl = root + "/lib/ld-musl-" + machine.architecture + ".so.1";
  const auto glibc = system_library(root, "libc.so.6", machine.architecture);
  std::error_code error;
  const bool is_musl = interpreter.empty() ? glibc.empty() && fs::exists(musl, error)
                                           : interpreter.find("/ld-musl-") != interpreter.npos;
  machine.libc = is_musl ? "musl" : glibc.empty() ? "" : "glibc";
  machine.libc_version =
      is_musl ? musl_version(root + (interpreter.empty() ? musl.substr(root.size()) : interpreter))
      : glibc.empty() ? ""
                      : glibc_version(glibc);
  if (machine.libc_version.empty())
    machine.notes.emplace_back("the version of the C library cannot be told");
}

std::string read_driver_version(const std::string& root, const std::string& architecture) {
  for (const auto* path : {"/proc/driver/nvidia/version", "/sys/module/nvidia/version"}) {
    if (auto version = first_version_in(read_text(root + path).value_or("")); !version.empty())
      return version;
  }
  for (const auto* name : {"libcuda.so.1", "libnvidia-ml.so.1"}) {
    std::error_code error;
    const auto path = system_library(root, name, architecture);
    const auto file = path.empty() ? "" : fs::canonical(path, error).filename().string();
    const auto at = file.find(".so.");
    if (at != file.npos && is_dotted_version(file.substr(at + 4))) return file.substr(at + 4);
  }
  return {};
}

std::vector<GpuFacts> parse_gpu_list(std::string_view csv) {
  std::vector<GpuFacts> gpus;
  for (const auto& line : split(csv, '\n')) {
    const auto comma = line.rfind(',');
    if (comma == line.npos) continue;
    GpuFacts gpu{.name = std::string(trim(std::string_view(line).substr(0, comma)))};
    const auto capability = trim(std::string_view(line).substr(comma + 1));
    if (is_dotted_version(capability)) gpu.capability = capability;
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::vector<GpuFacts> read_gpu_names(const std::string& root) {
  std::vector<GpuFacts> gpus;
  std::error_code error;
  for (const auto& folder : fs::directory_iterator(root + "/proc/driver/nvidia/gpus", error)) {
    for (const auto& line : split(read_text(folder.path() / "information").value_or(""), '\n')) {
      constexpr std::string_view label = "Model:";
      if (line.starts_with(label))
        gpus.push_back({.name = std::string(trim(std::string_view(line).substr(label.size())))});
    }
  }
  return gpus;
}

MachineFacts read_host() {
  MachineFacts machine;
  struct utsname kernel = {};
  if (uname(&kernel) == 0) machine.architecture = static_cast<const char*>(kernel.machine);
  machine.driver = read_driver_version("", machine.architecture);
  if (!machine.driver.empty()) read_gpus(machine);
  return machine;
}

}  // namespace wheelscope
