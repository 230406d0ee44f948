// Files from the command line: the only code that opens any.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "wheel.h"

namespace wheelscope {

// A file mapped into memory for reading.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  Bytes bytes() const { return Bytes({memory_.get(), size_}); }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(const std::byte* memory) const;
  };
  std::unique_ptr<const std::byte[], Unmap> memory_;
  std::size_t size_ = 0;
  std::jthread trimmer_;  // ends before the mapping does
};

// The files that a path stands for: itself, or in a folder every wheel and ELF file, sorted.
Result<std::vector<std::string>> expand_path(const std::string& path);

// A wheel or an ELF file, by its first bytes.
Result<Item> read_item(const std::string& path, const ScanOptions& options);

Result<std::string> read_text(const std::string& path);
Result<void> write_file(const std::string& path, std::string_view contents);

}  // namespace wheelscope
