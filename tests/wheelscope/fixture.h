// Test files made by fixtures.py, as bytes and as facts.
#pragma once

#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "input.h"

namespace wheelscope {

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

inline std::set<std::string> ids(const std::vector<Finding>& findings) {
  std::set<std::string> ids;
  for (const auto& finding : findings) ids.insert(finding.id);
  return ids;
}

using Ids = std::set<std::string>;

}  // namespace wheelscope
