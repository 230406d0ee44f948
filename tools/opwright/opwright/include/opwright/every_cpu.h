// On x86_64 a CPU kernel is compiled three times, and the loader picks the one for the processor;
// aarch64's baseline has the vectors it needs. clang gives such a function a name that other files
// do not find, so clang compiles only the baseline.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && !defined(__clang__)
#define OPWRIGHT_EVERY_CPU __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define OPWRIGHT_EVERY_CPU
#endif
