// Fuzzes the recognition of messages, and the explanation of what was found without a machine.
#include "answers/explain.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace wheelscope;
  static Disk disk("/nonexistent");
  for (const auto& symptom : recognise({reinterpret_cast<const char*>(data), size})) {
    if (explain(symptom, nullptr, disk).symptom.kind != symptom.kind) __builtin_trap();
  }
  return 0;
}
