// Fuzzes the fat binary reader and decompresses what it finds, up to a size.
#include "readers/fatbin.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace wheelscope;
  Fatbin fatbin;
  Allowance allowance(Allowance::facts_for(size));
  Loan memory(allowance);
  read_fatbin(Bytes(std::as_bytes(std::span(data, size))), false, memory, fatbin);
  for (const auto& code : fatbin.codes) {
    if (code.size < 1 << 20) (void)decompress(code, memory);
  }
  return 0;
}
