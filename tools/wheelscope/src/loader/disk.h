// The files of this machine as the loader sees them: opened once each, with ld.so.cache and the
// default folders.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "loader/loader.h"

namespace wheelscope {

struct FileToRead {
  std::string path;
  bool device_code = false;  // read it too, although the loader does not need it
};

class Disk {
 public:
  // `root` is put in front of every absolute path: the folder of a container's files, or empty.
  explicit Disk(std::string root = "") : root_(std::move(root)) {}

  // Opens the file at a path, with its symbols; null if there is none, or it is damaged or not an
  // ELF file.
  const LibraryFacts* open(const std::string& path);

  // Reads files in advance, on all cores.
  void read_all(const std::vector<FileToRead>& files);

  // Returns the world of a process on this machine, which refers to this object. Reads the cache at
  // once.
  LoaderWorld world(const std::string& machine);

 private:
  static std::unique_ptr<LibraryFacts> read(const FileToRead& file, const std::string& real);
  std::string real_path(const std::string& path) const;  // empty: there is no such file

  std::string root_;
  std::unordered_map<std::string, std::unique_ptr<LibraryFacts>> files_;  // by canonical path
  std::unordered_map<std::string, const LibraryFacts*> paths_;
};

// Returns the entries of ld.so.cache for one machine, name -> path; the first entry for a name
// counts. Empty if the cache is damaged.
std::map<std::string, std::string> read_loader_cache(Bytes cache, const std::string& machine);

// Returns the folders where the loader looks last: Debian's, and those of all systems.
std::vector<std::string> default_folders(const std::string& machine);

}  // namespace wheelscope
