// Fuzzes the whole path: a wheel is read, judged, covered, linked, compared and reported.
#include "answers/cover.h"
#include "facts/wheel.h"
#include "findings/policy.h"
#include "report/json.h"
#include "report/text.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace wheelscope;
  const Bytes file(std::as_bytes(std::span(data, size)));
  const ZipLimits limits{.members = 100, .member_size = 1 << 20, .total_size = 4 << 20};
  auto facts =
      read_wheel({"pkg-1.0-cp310-abi3-manylinux_2_28_x86_64.whl", file}, {.symbols = true}, limits);
  if (!facts) return 0;
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
  return 0;
}
