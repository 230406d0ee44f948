// Device code as text: what is in a wheel, which GPUs it serves, what makes it big.
#pragma once

#include "report/style.h"
#include "verdicts/verdicts.h"

namespace wheelscope {

void add_targets(const CudaVerdict& cuda, Lines& lines);
void add_gpus(const CudaVerdict& cuda, const Style& style, Lines& lines);

// A row for each library with device code, a column for each GPU; empty where one library or none
// has any.
std::string library_table(const CudaVerdict& cuda, const Style& style);

// sm_80 1.2 MB, compute_90 200 kB
std::string target_sizes(const std::vector<DeviceTarget>& targets);

}  // namespace wheelscope
