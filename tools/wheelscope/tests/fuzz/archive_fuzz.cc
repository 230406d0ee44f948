// Fuzzes the reader of static libraries, and reads each member of one as a library.
#include "facts/library.h"
#include "readers/archive.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace wheelscope;
  const Bytes file(std::as_bytes(std::span(data, size)));
  Allowance memory(Allowance::facts_for(size));
  ProblemList problems;
  if (!looks_like_archive(file)) return 0;
  (void)for_each_member(file, [&](Bytes contents) {
    read_library("fuzzed.o", contents, {.symbols = true}, memory, problems);
  });
  return 0;
}
