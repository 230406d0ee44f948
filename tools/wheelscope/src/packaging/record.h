// RECORD: the files of a wheel with their hashes and sizes.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "source/source.h"

namespace wheelscope {

// A line: path, algorithm=<urlsafe base64 without padding>, size.
struct RecordLine {
  std::string path, hash, size;
};
std::vector<RecordLine> parse_record(std::string_view text);

// Returns sha512 from sha512=AbC...; empty if there is no hash.
std::string algorithm_of(std::string_view hash);

// True if RECORD may use the algorithm: sha256 or better, and known to every Python.
bool is_strong(std::string_view algorithm);

// Returns a line of RECORD without its line end; quotes a path with a comma or a quote.
std::string record_line(const std::string& path, const Pieces& contents);

// Rewrites RECORD: replaces the lines of changed files, drops those of removed ones, and keeps all
// others as they are. `text` must outlive it.
class RecordRewriter {
 public:
  explicit RecordRewriter(std::string_view text) : text_(text) {}
  void set(const std::string& path, std::string line) { lines_[path] = std::move(line); }
  void drop(const std::string& path) { lines_[path].clear(); }
  void add(std::string line) { added_.push_back(std::move(line)); }  // before the line of RECORD
  std::string text(const std::string& own_path) const;

 private:
  std::string_view text_;
  std::unordered_map<std::string, std::string> lines_;
  std::vector<std::string> added_;
};

// Returns the hash of the contents as RECORD spells it; empty for an algorithm that is not
// supported here.
std::string record_hash(const Pieces& contents, const std::string& algorithm = "sha256");

}  // namespace wheelscope
