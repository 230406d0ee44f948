// Fuzzes the fat binary reader and decompresses what it finds, up to a size.
#include "fatbin.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace wheelscope;
  Fatbin fatbin;
  read_fatbin(Bytes(std::as_bytes(std::span(data, size))), false, fatbin);
  for (const auto& code : fatbin.codes) {
    if (code.size < 1 << 20) (void)decompress(code);
  }
  return 0;
}
