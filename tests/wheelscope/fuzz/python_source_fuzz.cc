// Fuzzes the reader of Python files, and what is concluded from one: which libraries its import
// opens.
#include "machine/python_source.h"

#include "machine/openings.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace wheelscope;
  const auto source = read_python_source({reinterpret_cast<const char*>(data), size});
  const Openings openings({&source}, {"libcore", "_C"});
  (void)openings.must_open("libcore");
  (void)openings.must_open_module("_C");
  return 0;
}
