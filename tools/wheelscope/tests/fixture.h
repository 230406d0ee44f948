// Test files made by fixtures.py, as bytes and as facts.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "commands/inputs.h"
#include "facts/wheel.h"
#include "source/system.h"

namespace wheelscope {

// A folder for the files of this run alone, which it removes: another user's may be there too.
inline const std::string& temporary_folder() {
  static const struct Folder {
    Folder() {
      if (!mkdtemp(path.data())) throw std::runtime_error("no folder can be made: " + path);
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path =
        (std::filesystem::temp_directory_path() / "wheelscope-tests-XXXXXX").string();
  } folder;
  return folder.path;
}

// Makes an empty folder inside of that one.
inline std::string fresh_folder(const std::string& name) {
  const auto path = std::filesystem::path(temporary_folder() + "/" + name).lexically_normal();
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path.string();
}

inline std::string fixture_path(const std::string& name) {
  return FIXTURES "/" + name;
}

// The only wheel in a folder of fixtures.
inline std::string wheel_path(const std::string& defect) {
  return expand_path(fixture_path("wheel/" + defect)).value().at(0);
}

inline Item read_wheel_fixture(const std::string& defect, const ScanOptions& options = {}) {
  return read_item(wheel_path(defect), options).value();
}

// The bytes of a fixture, kept alive.
class Fixture {
 public:
  explicit Fixture(const std::string& name) {
    std::ifstream file(fixture_path(name), std::ios::binary);
    if (!file) throw std::runtime_error("no such fixture: " + name);
    text_.assign(std::istreambuf_iterator<char>(file), {});
  }
  Bytes bytes() const { return Bytes(std::as_bytes(std::span(text_))); }

 private:
  std::string text_;
};

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

using Ids = std::set<std::string>;

inline Ids ids(const std::vector<Finding>& findings) {
  Ids ids;
  for (const auto& finding : findings) ids.insert(finding.id);
  return ids;
}

inline Ids ids(const ProblemList& problems) {
  Ids ids;
  for (const auto& problem : problems.listed) ids.insert(problem.id);
  return ids;
}

// Memory without a limit, for readers that are not tested for one.
inline Loan& any_memory() {
  static Allowance allowance;
  static Loan loan(allowance);
  return loan;
}

inline Result<Elf> read_elf(Bytes file) {
  return read_elf(file, any_memory());
}

}  // namespace wheelscope
