// Findings: facts and verdicts that someone must act on, each with its remedy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {

struct Finding {
  enum class Level { note, warning, error };
  std::string id;
  Level level = Level::error;
  std::string place;  // a member, a library, or empty for the whole file
  std::string what;
  std::string fix;
  std::optional<std::uint64_t> offset = {};  // in the file, or in the member named by `place`
  auto operator<=>(const Finding&) const = default;
};

// A file with everything known about it.
struct Item {
  Facts facts;
  Verdicts verdicts;
  std::vector<Finding> findings;
};

// Judges the facts and finds what is wrong with the file itself, whatever the policy.
Item examine(Facts facts);

Finding finding_of(const Problem& problem);

NAMES(Finding::Level, "note", "warning", "error")

// Policies: what a project allows its wheels to be. check() finds where a wheel breaks one.
//
// clang-format off
// A policy is a TOML file. Every key is optional. Only the keys that are present are judged,
// besides faults of any wheel (false tags, libraries that nothing brings, no device code in a wheel
// that claims CUDA, text relocations).
//
//   [platform]   highest = "manylinux_2_28"      the newest system that users must have
//   [size]       limit_mb = 100                  of the wheel file; PyPI's limit
//   [python]     abi = ["none", "abi3"]          accepted kinds
//                min = "3.10"                    the oldest Python that must work
//   [torch]      abi = ["stable"]                accepted kinds
//                min = "2.10"                    the oldest torch that must work
//   [cuda]       runtime = ["static"]            accepted kinds
//                sass = ["75", "90a"]            targets that must be there
//                ptx = true                      for GPUs that come later
//                driver = "525.60.13"            the oldest driver that must work
//   [libraries]  needed = ["libtorch.so"]        what may be needed beyond the wheel and the platform's own
//                rpath = ["$ORIGIN"]             what an RPATH or RUNPATH entry may start with
//   [hardening]  relro = "full", bind_now = true, nx = true, stack_protector = true
//   [contents]   debug_info = false              whether it is allowed
//                build_paths = ["/home/"]        what no string in a binary may start with
//   [levels]     size-limit = "warning"          a finding's level, by its id: error, warning, note, off
// clang-format on

struct Policy {
  std::string highest_platform;
  std::optional<std::uint64_t> size_limit_mb;
  std::vector<std::string> python_abi, torch_abi, cuda_runtime;
  std::string python_min, torch_min, driver;
  std::vector<std::string> sass;
  bool ptx = false;
  std::optional<std::vector<std::string>> needed, rpath;
  std::string relro;
  bool bind_now = false, nx = false, stack_protector = false;
  bool debug_info = true;
  std::vector<std::string> build_paths;
  std::map<std::string, std::string> levels;
};

// Parses a policy. Fails on an unknown key: a misspelt rule must not seem to be kept.
Result<Policy> parse_policy(std::string_view toml);

// Returns the findings about the file itself and about the policy, at the policy's levels.
std::vector<Finding> check(const Item& item, const Policy& policy);

}  // namespace wheelscope
