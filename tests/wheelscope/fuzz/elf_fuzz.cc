// Fuzzes the ELF reader and all that is derived from one library.
#include "library.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace wheelscope;
  std::vector<Finding> findings;
  read_library("fuzzed.so", Bytes(std::as_bytes(std::span(data, size))),
               {.symbols = true, .build_prefixes = {"/home/"}}, findings);
  return 0;
}
