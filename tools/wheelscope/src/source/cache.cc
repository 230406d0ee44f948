// Keeps files under the SHA-256 of their key; each starts with the SHA-256 of its contents.
#include "source/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "source/system.h"
#include "text/text.h"

namespace wheelscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t hash_size = 32;

}  // namespace

std::string Cache::path_of(const std::string& key) const {
  const auto name = hexadecimal(sha256(key));
  return folder_ + "/" + name.substr(0, 2) + "/" + name.substr(2);
}

bool Cache::has(const std::string& key) const {
  return !folder_.empty() && access(path_of(key).c_str(), R_OK) == 0;
}

std::optional<std::string> Cache::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const auto path = path_of(key);
  auto text = read_text(path);
  if (!text || text->size() < hash_size) return std::nullopt;
  const std::string hash = text->substr(0, hash_size);
  text->erase(0, hash_size);
  if (sha256(*text) != hash) return std::nullopt;  // a full disk, or someone's edit
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);  // see trim
  return std::move(*text);
}

void Cache::store(const std::string& key, std::string_view contents) {
  if (folder_.empty() || contents.size() > most_ / 4) return;
  std::ignore = write_file(path_of(key), sha256(contents) + std::string(contents));
}

void Cache::trim() const {
  if (folder_.empty()) return;
  // Only one process trims; if another holds the lock, it does the work.
  const int lock = ::open((folder_ + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock < 0) return;
  if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
    struct File {
      fs::file_time_type used;
      std::uint64_t size;
      fs::path path;
    };
    std::vector<File> files;
    std::uint64_t total = 0;
    std::error_code error;
    for (auto entry = fs::recursive_directory_iterator(folder_, error);
         !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      std::error_code gone;
      if (!entry->is_regular_file(gone) || entry->path().filename() == "lock") continue;
      const auto size = entry->file_size(gone);
      if (gone) continue;
      files.push_back({entry->last_write_time(gone), size, entry->path()});
      total += size;
    }
    std::ranges::sort(files, {}, &File::used);
    for (auto file = files.begin(); total > most_ && file != files.end(); ++file) {
      fs::remove(file->path, error);
      total -= file->size;
    }
  }
  close(lock);
}

std::string cache_folder() {
  const auto folder = environment_variable("XDG_CACHE_HOME");
  if (folder.starts_with('/')) return folder + "/wheelscope";
  const auto home = environment_variable("HOME");
  return home.empty() ? "" : home + "/.cache/wheelscope";
}

}  // namespace wheelscope
