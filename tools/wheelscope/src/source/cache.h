// Keeps what was fetched from the network for the next run, under names that identify the bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wheelscope {

// A folder of files, each named by the hash of its key. Processes may share it: a file appears
// whole or not at all, and one whose contents have changed counts as missing. A folder that cannot
// be written only makes the next run slower.
class Cache {
 public:
  // Without a folder, nothing is kept.
  explicit Cache(std::string folder = {}, std::uint64_t most = std::uint64_t{512} << 20)
      : folder_(std::move(folder)), most_(most) {}
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
  ~Cache() { trim(); }

  bool has(const std::string& key) const;  // find() may still find it damaged
  std::optional<std::string> find(const std::string& key) const;
  void store(const std::string& key, std::string_view contents);

 private:
  std::string path_of(const std::string& key) const;
  void trim() const;  // removes the least recently used files, down to the limit

  std::string folder_;
  std::uint64_t most_;  // bytes
};

// Returns wheelscope in XDG_CACHE_HOME, else in ~/.cache; empty if there is neither.
std::string cache_folder();

}  // namespace wheelscope
