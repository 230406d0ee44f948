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
  bool device_code = false;  // is of interest; the loader knows nothing of it
};

class Disk {
 public:
  // `root` stands before every absolute path: the folder of a container's files, or nothing.
  explicit Disk(std::string root = "") : root_(std::move(root)) {}

  // The file at a path, with its symbols; null: there is none, or it is no ELF file
  // or a damaged one.
  const LibraryFacts* open(const std::string& path);

  // Reads files that will be opened, on all cores.
  void read_all(const std::vector<FileToRead>& files);

  // The world of a process of this machine; `this` must outlive it. The cache is read at once.
  LoaderWorld world(const std::string& machine);

 private:
  static std::unique_ptr<LibraryFacts> read(const FileToRead& file, const std::string& real);
  std::string real_path(const std::string& path) const;  // empty: there is no such file

  std::string root_;
  std::unordered_map<std::string, std::unique_ptr<LibraryFacts>> files_;  // by canonical path
  std::unordered_map<std::string, const LibraryFacts*> paths_;
};

// The entries of ld.so.cache, name -> path, of one machine; the first for each name counts.
// Damaged: none.
std::map<std::string, std::string> read_loader_cache(Bytes cache, const std::string& machine);

// Where the loader looks at last: Debian's folders and everybody's.
std::vector<std::string> default_folders(const std::string& machine);

}  // namespace wheelscope
