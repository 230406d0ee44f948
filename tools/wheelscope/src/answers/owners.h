// Who ought to have a library or a symbol that is not there: the driver, the system, torch, or a
// distribution of NVIDIA's.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "findings/findings.h"

namespace wheelscope {

// The driver's libraries: every machine with an NVIDIA GPU has them, no package does.
bool is_driver_library(std::string_view name);

// A function of the driver's libraries, as far as its name tells.
bool is_driver_symbol(std::string_view name);

bool is_musl(std::string_view library);

// A library of the system that wheels may count on.
bool is_platform_library(const std::string& name);

// Part of the C++ runtime: std:: and what compilers call on their own. Some linkers leave its
// version out.
bool is_cxx_runtime_symbol(std::string_view name);

bool is_torch_library(std::string_view name);

// A name that wheels need from elsewhere: of the platform, the driver, CUDA, torch or Python.
bool is_known_library(const std::string& name);

// Which of torch's libraries ought to have a symbol: stable functions by the table, C++ names by
// their namespace. Empty: it is none of torch's.
std::string torch_library_of(const std::string& symbol);

// Which of the libraries that packages often use a symbol is of, by its name: OpenCV for cv::Mat's.
// Empty: it cannot be told.
std::string library_by_name(const std::string& symbol);

// The distributions on PyPI that bring a library of CUDA: nvidia-cuda-runtime-cu12 for
// libcudart.so.12. Of several, that for `cuda` (a version, or nothing) alone.
std::vector<std::string> cuda_distributions_of(const std::string& library,
                                               const std::string& cuda = "");

// The same for libraries beside each other that differ by numbers and by cpu or cuda: one is chosen
// when the program runs, for the torch or the FFmpeg that is there.
std::string library_family(const std::string& path);

// Every symbol of every library, with the library that an undefined one is expected from (empty: it
// cannot be told).
void for_each_symbol(const Item& item,
                     const std::function<void(const LibraryFacts& library, const SymbolFact& symbol,
                                              const std::string& owner)>& use);

}  // namespace wheelscope
