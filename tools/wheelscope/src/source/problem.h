// Problems: parts of an input that could not be read, or that contradict another part.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "source/bytes.h"

namespace wheelscope {

struct Problem {
  std::string id;     // kind: zip-crc, elf-broken, record-hash ...
  std::string place;  // a member or library; empty: the whole file
  std::string what;
  std::optional<std::uint64_t> offset = {};  // in the file, or in the member named by `place`
};

// A damaged archive can have a million problems of one kind: only the first ones are listed, the
// others are counted.
struct ProblemList {
  static constexpr std::size_t most_of_a_kind = 100;

  std::vector<Problem> listed;
  std::map<std::string, std::uint64_t> counts;  // by id, of all

  void add(Problem problem) {
    if (++counts[problem.id] <= most_of_a_kind) listed.push_back(std::move(problem));
  }
  void add(const char* id, const std::string& place, const Error& error) {
    add({.id = id, .place = place, .what = error.what, .offset = error.offset});
  }
  void add(ProblemList&& others) {
    for (auto& problem : others.listed) add(std::move(problem));
    for (const auto& [id, count] : others.counts) {
      if (count > most_of_a_kind) counts[id] += count - most_of_a_kind;
    }
  }
};

}  // namespace wheelscope
