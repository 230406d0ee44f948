// Answers questions about texts of Python packaging, so that test_packaging.py can ask the same of
// `packaging` and of Python's email parser, and about wheels that are read in part. Each line of
// the input is a JSON object with the question's name under "ask"; each line of the output is the
// answer, null if the text is invalid.
#include <algorithm>
#include <atomic>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "answers/owners.h"
#include "facts/wheel.h"
#include "packaging/claims.h"
#include "packaging/requirement.h"
#include "packaging/tag.h"
#include "verdicts/verdicts.h"

namespace {

using namespace wheelscope;
using Json = nlohmann::json;

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json compare(const Json& asked) {
  const auto a = parse_version(asked["a"].get<std::string>());
  const auto b = parse_version(asked["b"].get<std::string>());
  if (!a || !b) return {};
  return *a < *b ? -1 : *a == *b ? 0 : 1;
}

Json normalise(const Json& asked) {
  const auto version = parse_version(asked["version"].get<std::string>());
  return version ? Json(to_string(*version)) : Json();
}

Json ask_fulfils(const Json& asked) {
  return or_null(
      fulfils(asked["version"].get<std::string>(), asked["specifiers"].get<std::string>()));
}

Json requirement(const Json& asked) {
  const auto found = parse_requirement(asked["text"].get<std::string>());
  return {{"name", canonical_name(found.name)},
          {"extras", found.extras},
          {"specifiers", found.specifiers},
          {"url", found.url},
          {"marker", found.marker}};
}

Json marker(const Json& asked) {
  MarkerEnvironment environment;
  for (const auto& [name, value] : asked["environment"].items()) environment[name] = value;
  return or_null(holds(asked["marker"].get<std::string>(), environment));
}

Json headers(const Json& asked) {
  Json found = Json::array();
  for_each_header(
      asked["text"].get<std::string>(),
      [&](std::string_view key, std::string_view value) { found.push_back({key, value}); });
  return found;
}

Json wheel_name(const Json& asked) {
  const auto found = parse_wheel_name(asked["file"].get<std::string>());
  if (!found) return {};
  return {{"name", found->name},
          {"version", found->version},
          {"build", found->build},
          {"tags", found->file_name_tags}};
}

Json ask_admits(const Json& asked) {
  return admits(split_tag(asked["tag"].get<std::string>()),
                PythonBuild(asked["python"].get<std::string>()));
}

Json ask_promises_more(const Json& asked) {
  return promises_more(asked["a"].get<std::string>(), asked["b"].get<std::string>());
}

// Returns the verdicts on a wheel that need no device code.
Json verdicts_on(const Result<Facts>& facts) {
  if (!facts) return facts.error().what;
  const auto verdicts = judge(*facts);
  const auto& [platform, python, torch, numpy, cuda] = verdicts;
  auto because = python.because;
  std::ranges::sort(because);
  return {{"platform", platform.tag},
          {"glibc", platform.glibc},
          {"external", platform.external_libraries},
          {"python", name_of(python.abi)},
          {"python_min", python.min.value_or("")},
          {"pythons", python.versions},
          {"python_because", because},
          {"torch", name_of(torch.abi)},
          {"torch_min", torch.min.value_or("")},
          {"torch_symbols", torch.symbols},
          {"cudart", cuda.runtime_choices},
          {"requires", facts->wheel->requires_dist}};
}

// Returns the verdicts on a wheel read in part, those on the whole wheel, and how many bytes the
// former needed.
Json part_and_whole(const Json& asked) {
  const auto path = asked["file"].get<std::string>();
  const auto file = Source::map(path);
  if (!file) return {};
  const auto all = file->bytes();
  std::atomic<std::uint64_t> read = 0;
  const auto lazy = Source::lazy(all.size(), [&](std::uint64_t offset, std::span<std::byte> room) {
    std::ranges::copy(all.span().subspan(offset, room.size()), room.begin());
    read += room.size();
    return true;
  });
  const auto part = verdicts_on(read_wheel_start({path, lazy.bytes()}, is_known_library));
  return {{"part", part},
          {"whole", verdicts_on(read_wheel({path, all}, {.device_code = false}))},
          {"read", read.load()},
          {"size", all.size()}};
}

}  // namespace

int main() {
  static const std::map<std::string, Json (*)(const Json&)> answers{
      {"compare", compare},
      {"normalise", normalise},
      {"fulfils", ask_fulfils},
      {"requirement", requirement},
      {"marker", marker},
      {"headers", headers},
      {"wheel_name", wheel_name},
      {"admits", ask_admits},
      {"promises_more", ask_promises_more},
      {"part_and_whole", part_and_whole},
  };
  for (std::string line; std::getline(std::cin, line);) {
    const auto asked = Json::parse(line);
    std::cout << answers.at(asked["ask"])(asked).dump() << std::endl;
  }
}
