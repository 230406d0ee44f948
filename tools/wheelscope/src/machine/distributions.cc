// Lists distributions by the names of their dist-info folders; opens only what is asked for.
#include "machine/distributions.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "loader/disk.h"
#include "packaging/record.h"
#include "packaging/requirement.h"
#include "source/files.h"
#include "text/text.h"

namespace wheelscope {
namespace {

namespace fs = std::filesystem;

bool is_shared_library(std::string_view name) {
  const auto at = name.rfind(".so");
  if (at == name.npos) return false;
  const auto rest = name.substr(at + 3);
  return rest.empty() || (rest[0] == '.' && rest.find_first_not_of("0123456789.") == rest.npos);
}

// '2.10.0+cu128' from the line `__version__ = '2.10.0+cu128'` or `cuda: Optional[str] = '12.8'`;
// empty for None and where there is no such line.
std::string python_constant(const std::string& text, const std::string& name) {
  for (const auto& line : split(text, '\n')) {
    if (!line.starts_with(name) || line.size() == name.size()) continue;
    const char next = line[name.size()];
    if (next != ' ' && next != ':' && next != '=') continue;
    const auto value =
        trim(std::string_view(line).substr(std::min(line.find('='), line.size() - 1) + 1));
    if (value.size() < 2 || (value.front() != '\'' && value.front() != '"')) return {};
    return std::string(value.substr(1, value.find(value.front(), 1) - 1));
  }
  return {};
}

// Texts of C++'s library have another type under each of gcc's two ABIs, and so other names in the
// symbols of functions that take them.
std::optional<bool> uses_cxx11_abi(const std::string& libc10) {
  Disk disk;
  const auto* library = disk.open(libc10);
  if (!library) return std::nullopt;
  bool old = false;
  for (const auto& symbol : library->symbols) {
    if (!symbol.defined || !symbol.name.starts_with("_ZN3c10")) continue;
    if (symbol.name.find("__cxx11") != std::string::npos) return true;
    // Ss is std::string of the old ABI.
    old |= symbol.name.find("RKSs") != std::string::npos ||
           symbol.name.find("ESs") != std::string::npos;
  }
  return old ? std::optional(false) : std::nullopt;
}

}  // namespace

std::vector<Distribution> list_distributions(const std::vector<std::string>& site_packages) {
  std::map<std::string, Distribution> found;
  for (const auto& folder : site_packages) {
    for (const auto& file : entries_of(folder)) {
      constexpr std::string_view suffix = ".dist-info";
      if (!file.ends_with(suffix)) continue;
      const auto stem = file.substr(0, file.size() - suffix.size());
      const auto dash = stem.find('-');
      if (dash == stem.npos) continue;
      auto name = canonical_name(stem.substr(0, dash));
      found.try_emplace(name,
                        Distribution{name, stem.substr(dash + 1), folder, fs::path(folder) / file});
    }
  }
  std::vector<Distribution> distributions;
  distributions.reserve(found.size());
  for (auto& [name, distribution] : found) distributions.push_back(std::move(distribution));
  return distributions;
}

std::vector<std::string> shared_libraries_of(const Distribution& distribution) {
  std::vector<std::string> paths;
  const auto record = read_text(distribution.dist_info + "/RECORD");
  if (!record) return paths;
  for (const auto& line : parse_record(*record)) {
    if (!is_shared_library(base_name(line.path))) continue;
    paths.push_back((fs::path(distribution.folder) / line.path).lexically_normal().string());
  }
  std::ranges::sort(paths);
  return paths;
}

std::optional<TorchFacts> find_torch(const std::vector<std::string>& site_packages) {
  for (const auto& folder : site_packages) {
    const auto text = read_text(folder + "/torch/version.py");
    if (!text) continue;
    const auto libc10 = folder + "/torch/lib/libc10.so";
    return TorchFacts{.path = folder + "/torch",
                      .version = python_constant(*text, "__version__"),
                      .cuda = python_constant(*text, "cuda"),
                      .rocm = python_constant(*text, "hip"),
                      .cxx11_abi = uses_cxx11_abi(libc10)};
  }
  return std::nullopt;
}

std::vector<CudaLibraryFacts> find_cuda_libraries(const std::vector<std::string>& site_packages,
                                                  const std::optional<TorchFacts>& torch) {
  std::vector<CudaLibraryFacts> libraries;
  for (const auto& distribution : list_distributions(site_packages)) {
    if (!distribution.name.starts_with("nvidia-")) continue;
    for (const auto& path : shared_libraries_of(distribution)) {
      if (base_name(path).starts_with("lib"))
        libraries.push_back({base_name(path), path, distribution.name, distribution.version});
    }
  }
  const auto own = torch ? torch->path + "/lib" : "";
  for (const auto& name : entries_of(own)) {
    for (const auto* start : {"libcudart", "libcublas", "libcudnn", "libnvrtc", "libcufft",
                              "libcurand", "libcusparse", "libcusolver", "libnccl", "libcupti"}) {
      if (name.starts_with(start))
        libraries.push_back({name, own + "/" + name, "torch", torch->version});
    }
  }
  std::ranges::sort(libraries, {}, &CudaLibraryFacts::name);
  return libraries;
}

}  // namespace wheelscope
