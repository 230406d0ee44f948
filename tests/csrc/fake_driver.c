// A driver that supports CUDA 11.4 and nothing else: what the runtime meets on a machine that was
// not updated.
#include <stddef.h>
#include <string.h>

int cuInit(unsigned flags) {
  return (void)flags, 0;
}
int cuDriverGetVersion(int* version) {
  return *version = 11040, 0;
}

int cuGetProcAddress(const char* name, void** function, int version, unsigned long flags) {
  (void)version, (void)flags;
  *function = !strcmp(name, "cuInit")               ? (void*)cuInit
              : !strcmp(name, "cuDriverGetVersion") ? (void*)cuDriverGetVersion
              : !strcmp(name, "cuGetProcAddress")   ? (void*)cuGetProcAddress
                                                    : NULL;
  return *function ? 0 : 500;
}

int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long flags,
                        void* found) {
  (void)found;
  return cuGetProcAddress(name, function, version, flags);
}
