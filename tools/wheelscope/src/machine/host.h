// The computer itself: its C library, its GPU driver and its GPUs, from files and from the driver's
// own program.
#pragma once

#include "facts/machine.h"

namespace wheelscope {

// `root` stands before every absolute path: a folder with the files of a machine, or nothing.
//
// The C library that programs with this interpreter (/lib64/ld-linux-x86-64.so.2) run with; with an
// empty one, that of the machine's own programs.
void read_libc(const std::string& root, const std::string& interpreter, MachineFacts& machine);

// From the kernel module's files, or else from the file name of libcuda. Empty: there is none.
std::string read_driver_version(const std::string& root, const std::string& architecture);

// Name and compute capability of each GPU, as nvidia-smi tells them in CSV.
std::vector<GpuFacts> parse_gpu_list(std::string_view csv);

// The names that the kernel module gives GPUs; compute capabilities are not among its files.
std::vector<GpuFacts> read_gpu_names(const std::string& root);

// This computer's architecture, driver and GPUs. nvidia-smi is the only program that is started,
// and only where there is a driver.
MachineFacts read_host();

}  // namespace wheelscope
