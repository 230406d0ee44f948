// Fuzzes the readers and everything derived from their facts. FUZZ_TARGET names the function in
// `targets` that gets the input.

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "answers/cover.h"
#include "answers/explain.h"
#include "commands/thin.h"
#include "facts/wheel.h"
#include "findings/findings.h"
#include "machine/python_source.h"
#include "packaging/claims.h"
#include "packaging/record.h"
#include "packaging/requirement.h"
#include "readers/archive.h"
#include "report/json.h"
#include "report/text.h"

namespace wheelscope {
namespace {

// A static library, each member of which is read as a library.
void fuzz_archive(Bytes file) {
  Allowance memory(Allowance::facts_for(file.size()));
  ProblemList problems;
  if (!looks_like_archive(file)) return;
  (void)for_each_member(file, [&](Bytes contents) {
    read_library("fuzzed.o", contents, {.symbols = true}, memory, problems);
  });
}

// An ELF file, and everything derived from one library.
void fuzz_elf(Bytes file) {
  ProblemList problems;
  Allowance memory(Allowance::facts_for(file.size()));
  read_library("fuzzed.so", file, {.symbols = true, .build_prefixes = {"/home/"}}, memory,
               problems);
}

// A message, explained without a machine.
void fuzz_explain(Bytes file) {
  static Disk disk("/nonexistent");
  for (const auto& symptom : recognise(file.text())) {
    if (explain(symptom, nullptr, disk).symptom.kind != symptom.kind) std::abort();
  }
}

// A fat binary, whose code is decompressed up to a size.
void fuzz_fatbin(Bytes file) {
  Fatbin fatbin;
  Allowance allowance(Allowance::facts_for(file.size()));
  Loan memory(allowance);
  read_fatbin(file, false, memory, fatbin);
  for (const auto& code : fatbin.codes) {
    if (code.size < 1 << 20) (void)decompress(code, memory);
  }
}

// The texts of Python packaging: METADATA, WHEEL, RECORD, requirements, markers, versions,
// specifiers, names and tags. Values that were parsed must survive being written and parsed again.
void fuzz_packaging(Bytes file) {
  const auto text = file.text();
  static const auto environment = linux_environment("3.13", "x86_64");
  WheelClaims claims;
  parse_metadata(text, claims);
  parse_wheel_file(text, claims);
  (void)parse_record(text);
  const auto requirement = parse_requirement(text);
  (void)holds(requirement.marker, environment);
  (void)holds(text, environment);
  (void)fulfils("2.15.0", text);
  (void)can_fulfil("2.15", text);
  (void)parse_wheel_name(text);
  (void)admits(split_tag(text), PythonBuild("3.14t"));
  (void)promises_more(text, "manylinux_2_28_x86_64");
  if (const auto version = parse_version(text)) {
    const auto again = parse_version(to_string(*version));
    if (!again || *again != *version) std::abort();
  }
}

// A Python file, and the libraries that importing it opens.
void fuzz_python_source(Bytes file) {
  (void)read_python_source(file.text(), target_of("3.11.7", "x86_64"), PythonReading::imports);
  const auto source = read_python_source(file.text());
  const Openings openings({&source}, {"libcore", "_C"});
  for (const bool another_loads : {false, true}) (void)openings.must_open("libcore", another_loads);
  (void)openings.must_open_module("_C");
}

// Thinning: for any wheel or library, the output is sound and a thinning of the input.
const ThinFor hopper{.gpus = {"9.0"}};

// The thinned file has the device code that the plan kept, and the same host code.
void check_file(Bytes file) {
  Allowance memory(Allowance::facts_for(file.size()));
  for (const auto* path : {"x.so", "x.ptx"}) {
    const auto plans = plan_thinning(path, file, {hopper}, memory);
    if (plans.empty() || plans.front().removed || !plans.front().changes()) continue;
    const auto output = thinned(file, plans.front()).joined();
    if (output.bytes().size() != plans.front().size) std::abort();
    Gpus served, lost;
    if (compare_thinned(path, file, output.bytes(), served, lost, memory) || lost.contains("9.0"))
      std::abort();
  }
}

void check_wheel(Bytes file) {
  static const std::string folder = std::filesystem::temp_directory_path() / "wheelscope-thin-fuzz";
  static const std::string name = "pkg-1.0-cp310-abi3-manylinux_2_28_x86_64.whl";
  const ZipLimits limits{.members = 100, .member_size = 1 << 20, .total_size = 4 << 20};
  const auto thin = thin_wheel(
      {name, file}, hopper, folder, std::nullopt, [](const ThinnedWheel&) { return true; }, limits);
  if (!thin || thin->written.empty()) return;
  const auto written = Source::map(thin->written).value();
  const WheelInput output{name, written.bytes()};
  const auto check = check_thinning({name, file}, output);
  if (!check || !check->holds() || check->lost.contains("9.0")) std::abort();
  const auto facts = read_wheel(output).value();
  for (const auto& problem : facts.problems.listed) {
    if (problem.id.starts_with("zip-") || problem.id.starts_with("record-")) std::abort();
  }
}

void fuzz_thin(Bytes file) {
  check_file(file);
  check_wheel(file);
}

// The whole path: a wheel is read, judged, covered, linked, compared and reported.
void fuzz_wheel(Bytes file) {
  const ZipLimits limits{.members = 100, .member_size = 1 << 20, .total_size = 4 << 20};
  auto facts =
      read_wheel({"pkg-1.0-cp310-abi3-manylinux_2_28_x86_64.whl", file}, {.symbols = true}, limits);
  if (!facts) return;
  const auto item = examine(std::move(*facts));
  static const auto policy =
      parse_policy("hardening.nx = true\ncuda.ptx = true\nlibraries = { needed = [], rpath = [] }")
          .value();
  static const std::vector<Cell> cells{{"x86_64", "2.15", "13.0", "3.13"},
                                       {"x86_64", "2.10", "cpu", "3.14t"}};
  (void)check(item, policy);
  (void)cover({item}, cells);
  (void)link_text(link(item, {}), {});
  (void)diff_text(diff(item, Item{}), {});
  (void)show_text(item, {.colour = true});
  (void)json_document("items", Json::array({to_json(item)}));
}

// Every member of whatever looks like an archive is inflated, within small limits.
void fuzz_zip(Bytes file) {
  const auto archive =
      read_zip(file, {.members = 1000, .member_size = 1 << 20, .total_size = 8 << 20});
  if (!archive) return;
  for (const auto& member : archive->members) {
    if (member.readable) (void)read_member(file, member);
  }
}

const std::map<std::string, void (*)(Bytes)> targets{{"archive", fuzz_archive},
                                                     {"elf", fuzz_elf},
                                                     {"explain", fuzz_explain},
                                                     {"fatbin", fuzz_fatbin},
                                                     {"packaging", fuzz_packaging},
                                                     {"python_source", fuzz_python_source},
                                                     {"thin", fuzz_thin},
                                                     {"wheel", fuzz_wheel},
                                                     {"zip", fuzz_zip}};

void (*chosen())(Bytes) {
  const char* name = std::getenv("FUZZ_TARGET");
  const auto found = targets.find(name ? name : "");
  if (found != targets.end()) return found->second;
  std::fprintf(stderr, "FUZZ_TARGET names none of the targets\n");
  std::exit(2);
}

}  // namespace
}  // namespace wheelscope

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const auto target = wheelscope::chosen();
  target(wheelscope::Bytes(std::as_bytes(std::span(data, size))));
  return 0;
}
