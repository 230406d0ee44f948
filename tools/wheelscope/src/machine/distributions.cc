// Lists distributions by the names of their dist-info folders, opening only what is needed, and
// compares every RECORD of an environment with the disk, distribution by distribution on all cores.
#include "machine/distributions.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>

#include "loader/disk.h"
#include "packaging/claims.h"
#include "packaging/record.h"
#include "packaging/requirement.h"
#include "source/budget.h"
#include "source/source.h"
#include "source/system.h"
#include "text/text.h"

namespace wheelscope {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

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

struct Recorded {
  std::vector<RecordLine> lines;  // with absolute paths
  std::set<std::string> folders;  // inside site-packages, that it has files in
  struct timespec written{};      // RECORD itself
  bool is_known = false;          // it has a RECORD
};

bool is_code(std::string_view name) {
  return name.ends_with(".py") || name.ends_with(".so") || name.find(".so.") != name.npos;
}

Recorded read_record(const Distribution& distribution) {
  Recorded recorded;
  const auto file = distribution.dist_info + "/RECORD";
  struct stat status{};
  const auto text = read_text(file);
  if (!text || stat(file.c_str(), &status) != 0) return recorded;
  recorded.is_known = true;
  recorded.written = status.st_mtim;
  recorded.lines = parse_record(*text);
  for (auto& line : recorded.lines) {
    const bool inside = !line.path.starts_with("..") && !line.path.starts_with('/');
    const auto slash = line.path.rfind('/');
    if (inside && slash != line.path.npos && line.path.find(".dist-info/") == line.path.npos)
      recorded.folders.insert(distribution.folder + "/" + line.path.substr(0, slash));
    if (!inside) line.hash.clear();  // scripts: whoever moves an environment rewrites them
    line.path = (fs::path(distribution.folder) / line.path).lexically_normal().string();
  }
  return recorded;
}

// Returns nothing if the file is as it was installed.
std::optional<FileState> compare(const RecordLine& line, const timespec& written, bool sizes) {
  struct stat status{};
  if (stat(line.path.c_str(), &status) != 0)
    return errno == EACCES ? FileState::unreadable : FileState::missing;
  if (is_code(base_name(line.path)) && access(line.path.c_str(), R_OK) != 0)
    return FileState::unreadable;
  if (line.hash.empty() || !sizes || !S_ISREG(status.st_mode)) return std::nullopt;
  std::int64_t size = -1;
  std::from_chars(line.size.data(), line.size.data() + line.size.size(), size);
  if (size >= 0 && status.st_size < size) return FileState::shortened;
  if (size >= 0 && status.st_size != size) return FileState::changed;
  constexpr int slack = 2;  // seconds that an installer takes to write RECORD at last
  if (status.st_mtim.tv_sec <= written.tv_sec + slack || status.st_size == 0) return std::nullopt;
  const auto source = Source::map(line.path);
  if (!source) return std::nullopt;
  const auto hash = record_hash(source->bytes().span(), algorithm_of(line.hash));
  return hash.empty() || hash == line.hash ? std::nullopt : std::optional(FileState::changed);
}

std::vector<std::string> lines_of_record(const Distribution& distribution) {
  std::vector<std::string> files;
  if (const auto record = read_text(distribution.dist_info + "/RECORD")) {
    for (auto& line : parse_record(*record)) files.push_back(std::move(line.path));
  }
  return files;
}

// Reads direct_url.json, and finds the folders that an editable installation leaves its modules in.
void read_origin(Distribution& distribution) {
  const auto text = read_text(distribution.dist_info + "/direct_url.json");
  const auto json = Json::parse(text.value_or(""), nullptr, false);
  if (!json.is_object()) return;
  if (const auto url = json.find("url"); url != json.end() && url->is_string())
    distribution.origin = url->get<std::string>();
  const auto folder = json.find("dir_info");
  if (folder == json.end() || !folder->is_object() || folder->value("editable", Json()) != true)
    return;
  for (const auto& file : lines_of_record(distribution)) {
    if (!file.ends_with(".pth")) continue;
    for (auto& source : read_path_file(distribution.folder + "/" + file).folders)
      distribution.sources.push_back(std::move(source));
  }
}

// Adds the code of an editable installation. A folder that is the whole project has tests and more
// beside the package.
void add_source_files(const Distribution& distribution, std::vector<std::string>& files) {
  std::set<std::string> names;
  for (const auto& file : files) names.insert(file.substr(0, file.find('/')));
  const auto top_level = read_text(distribution.dist_info + "/top_level.txt").value_or("");
  for (auto& name : words_of(top_level)) names.insert(std::move(name));
  for (const auto& source : distribution.sources) {
    std::error_code error;
    const bool is_project =
        fs::exists(source + "/pyproject.toml", error) || fs::exists(source + "/setup.py", error);
    for (fs::recursive_directory_iterator entry(source, error), end; entry != end;
         entry.increment(error)) {
      const auto path = entry->path().string();
      const auto name = base_name(path);
      const auto stem = stem_of(path);
      const bool is_top = entry.depth() == 0;
      const bool is_left_out = is_top && is_project && !names.contains(stem) &&
                               canonical_name(stem) != distribution.name;
      if (entry->is_directory(error)) {
        if (is_left_out || name.find('.') != name.npos) entry.disable_recursion_pending();
      } else if (is_code(name) && !is_left_out) {
        files.push_back(path.substr(source.size() + 1));
      }
    }
  }
}

}  // namespace

std::string Distribution::path_of(const std::string& file) const {
  for (const auto& source : sources) {
    std::error_code error;
    if (fs::exists(source + "/" + file, error)) return source + "/" + file;
  }
  return (fs::path(folder) / file).lexically_normal().string();
}

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
  for (auto& [name, distribution] : found) {
    read_origin(distribution);
    distributions.push_back(std::move(distribution));
  }
  return distributions;
}

std::vector<std::string> recorded_files(const Distribution& distribution) {
  auto files = lines_of_record(distribution);
  if (!distribution.sources.empty()) add_source_files(distribution, files);
  return files;
}

std::string reinstallation(const Distribution& distribution) {
  const auto& origin = distribution.origin;
  if (!distribution.sources.empty()) return "pip install --no-deps --editable " + origin;
  if (!origin.empty()) return "install it again from " + origin;
  return "pip install --force-reinstall --no-deps " + distribution.name +
         "==" + distribution.version;
}

WheelClaims claims_of(const Distribution& distribution) {
  WheelClaims claims;
  if (const auto text = read_text(distribution.dist_info + "/METADATA"))
    parse_metadata(*text, claims);
  return claims;
}

std::vector<std::string> shared_libraries_of(const Distribution& distribution) {
  std::vector<std::string> paths;
  for (const auto& file : recorded_files(distribution)) {
    if (is_shared_library(base_name(file))) paths.push_back(distribution.path_of(file));
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

std::vector<std::vector<OddFile>> compare_with_records(
    const std::vector<Distribution>& distributions, const std::string& prefix) {
  // conda rewrites paths in files after RECORD was written, and Debian strips libraries.
  const bool conda = fs::exists(prefix + "/conda-meta");
  const auto count = distributions.size();
  std::vector<Recorded> recorded(count);
  run_on_all_cores(count, [&](std::size_t i) { recorded[i] = read_record(distributions[i]); });
  std::unordered_set<std::string> known;
  std::set<std::string> unrecorded;  // site-packages with distributions that have no RECORD
  for (std::size_t i = 0; i < count; ++i) {
    for (const auto& line : recorded[i].lines) known.insert(line.path);
    if (!recorded[i].is_known) unrecorded.insert(distributions[i].folder);
  }
  std::vector<std::vector<OddFile>> odd(count);
  run_on_all_cores(count, [&](std::size_t i) {
    const bool sizes = !conda && !distributions[i].folder.ends_with("/lib/python3/dist-packages");
    for (const auto& line : recorded[i].lines) {
      if (line.path.ends_with(".pyc")) continue;
      if (const auto state = compare(line, recorded[i].written, sizes))
        odd[i].push_back({*state, line.path});
    }
    if (unrecorded.contains(distributions[i].folder)) return;
    for (const auto& folder : recorded[i].folders) {
      std::error_code error;
      for (const auto& entry : fs::directory_iterator(folder, error)) {
        const auto path = entry.path().string();
        if (is_code(base_name(path)) && !known.contains(path) && entry.is_regular_file(error))
          odd[i].push_back({FileState::foreign, path});
      }
    }
    std::ranges::sort(odd[i], {}, &OddFile::path);
  });
  std::unordered_set<std::string> told;  // foreign files of shared folders, once
  for (auto& files : odd) {
    std::erase_if(files, [&](const OddFile& file) {
      return file.state == FileState::foreign && !told.insert(file.path).second;
    });
  }
  return odd;
}

}  // namespace wheelscope
