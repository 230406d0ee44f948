// Fuzzes the readers and everything derived from their facts. FUZZ_TARGET names the function in
// `targets` that gets the input.
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "answers/cover.h"
#include "answers/explain.h"
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

void fuzz_thin(Bytes file);

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

// Deflated data: our inflater must find the same as zlib.
void compare_with_zlib(Bytes file) {
  static unsigned char expected[64 << 10], found[sizeof expected];
  auto* data = reinterpret_cast<const unsigned char*>(file.text().data());
  z_stream stream{};
  inflateInit2(&stream, -15);
  stream.next_in = const_cast<unsigned char*>(data);
  stream.avail_in = static_cast<uInt>(file.size());
  stream.next_out = expected;
  stream.avail_out = sizeof expected;
  const bool sound = inflate(&stream, Z_FINISH) == Z_STREAM_END;
  inflateEnd(&stream);
  const auto room = std::as_writable_bytes(std::span(found).first(stream.total_out));
  const auto blocks = inflate_blocks(file.span(), room);
  if (blocks.has_value() != sound || (sound && std::memcmp(found, expected, room.size()) != 0))
    std::abort();
}

// Every member of whatever looks like an archive is inflated, within small limits.
void fuzz_zip(Bytes file) {
  compare_with_zlib(file);
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
