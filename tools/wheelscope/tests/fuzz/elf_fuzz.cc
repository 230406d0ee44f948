// Fuzzes the ELF reader and all that is derived from one library.
#include "facts/library.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace wheelscope;
  ProblemList problems;
  Allowance memory(Allowance::facts_for(size));
  read_library("fuzzed.so", Bytes(std::as_bytes(std::span(data, size))),
               {.symbols = true, .build_prefixes = {"/home/"}}, memory, problems);
  return 0;
}
