// The files of this machine as the loader sees them: opened once each, with ld.so.cache and the
// default folders.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "loader/loader.h"

namespace wheelscope {

class Disk {
 public:
  // `root` stands before every absolute path: the folder of a container's files, or nothing. Device
  // code is read where it is asked for; the loader knows nothing of it.
  explicit Disk(std::string root = "", bool device_code = false)
      : root_(std::move(root)), scan_{.symbols = true, .device_code = device_code} {}

  // The file at a path, with its symbols; null: there is none, or it is no ELF file.
  const LibraryFacts* open(const std::string& path);

  // Reads files that will be opened, on all cores.
  void read_all(const std::vector<std::string>& paths);

  // The world of a process of this machine; `this` must outlive it. The cache is read at once.
  LoaderWorld world(const std::string& machine);

 private:
  std::unique_ptr<LibraryFacts> read(const std::string& path, const std::string& real) const;
  std::string real_path(const std::string& path) const;  // empty: there is no such file

  std::string root_;
  ScanOptions scan_;
  std::map<std::string, std::unique_ptr<LibraryFacts>> files_;  // by canonical path
  std::map<std::string, const LibraryFacts*> paths_;
};

// The entries of ld.so.cache, name -> path, of one machine; the first for each name counts.
// Damaged: none.
std::map<std::string, std::string> read_loader_cache(Bytes cache, const std::string& machine);

// Where the loader looks at last: Debian's folders and everybody's.
std::vector<std::string> default_folders(const std::string& machine);

}  // namespace wheelscope
