// Compares every RECORD of an environment with the disk, distribution by distribution on all cores.
#include "machine/distributions.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <thread>
#include <unordered_set>

#include "packaging/record.h"
#include "source/budget.h"
#include "source/files.h"
#include "source/source.h"
#include "text/text.h"

namespace wheelscope {
namespace {

namespace fs = std::filesystem;

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

// Nothing: it is as it was installed.
std::optional<FileState> compare(const RecordLine& line, const timespec& written, bool sizes) {
  struct stat status{};
  if (stat(line.path.c_str(), &status) != 0) return FileState::missing;
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

}  // namespace

std::vector<std::vector<OddFile>> compare_with_records(
    const std::vector<Distribution>& distributions, const std::string& prefix) {
  // conda rewrites paths in files after RECORD was written.
  const bool sizes = !fs::exists(prefix + "/conda-meta");
  const auto count = distributions.size();
  std::vector<Recorded> recorded(count);
  const auto threads = std::max(1U, std::thread::hardware_concurrency());
  run_within_budget(std::vector<std::uint64_t>(count), 0, threads,
                    [&](std::size_t i) { recorded[i] = read_record(distributions[i]); });
  std::unordered_set<std::string> known;
  std::set<std::string> unrecorded;  // site-packages with distributions that have no RECORD
  for (std::size_t i = 0; i < count; ++i) {
    for (const auto& line : recorded[i].lines) known.insert(line.path);
    if (!recorded[i].is_known) unrecorded.insert(distributions[i].folder);
  }
  std::vector<std::vector<OddFile>> odd(count);
  run_within_budget(std::vector<std::uint64_t>(count), 0, threads, [&](std::size_t i) {
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
