// Fuzzes the reader of Python files, and what is concluded from one: which libraries its import
// opens.
#include "machine/python_source.h"

#include "machine/openings.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace wheelscope;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  (void)read_python_source(text, target_of("3.11.7", "x86_64"), PythonReading::imports);
  const auto source = read_python_source(text);
  const Openings openings({&source}, {"libcore", "_C"});
  for (const bool another_loads : {false, true}) (void)openings.must_open("libcore", another_loads);
  (void)openings.must_open_module("_C");
  return 0;
}
