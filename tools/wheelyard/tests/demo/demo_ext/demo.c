// One function for the demo project.
#include <stdint.h>
int64_t demo_twice(int64_t value) { return 2 * value; }
