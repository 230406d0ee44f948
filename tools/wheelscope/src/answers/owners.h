// Tells who should have a library or a symbol that is missing: the driver, the system, torch, or
// one of NVIDIA's distributions.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "findings/findings.h"
#include "tables/tables.h"

namespace wheelscope {

// True for the driver's libraries: every machine with an NVIDIA GPU has them, no package does.
bool is_driver_library(std::string_view name);

// True if the name is that of a function of the driver's libraries.
bool is_driver_symbol(std::string_view name);

bool is_musl(std::string_view library);

// True for the system's libraries that wheels may count on.
bool is_platform_library(const std::string& name);

// True for parts of the C++ runtime: std:: and the functions that compilers call on their own. Some
// linkers leave the version of these symbols out.
bool is_cxx_runtime_symbol(std::string_view name);

bool is_torch_library(std::string_view name);

// True for a library that wheels need from elsewhere: of the platform, the driver, CUDA, torch or
// Python.
bool is_known_library(const std::string& name);

// Returns the library of torch that should have a symbol: the table knows stable functions, and C++
// names are told by their namespace. Empty if the symbol is not torch's.
std::string torch_library_of(const std::string& symbol);

// Returns the row of data/providers.csv, among those of a kind (symbol, symbol-macos ...), with the
// longest beginning of a function's name; null if there is none. C++'s are written as cv::Mat.
const Provider* provider_of_symbol(std::string_view symbol, std::string_view kind);

// Returns the commonly used library that a symbol's name points to, such as OpenCV for cv::Mat.
// Empty if the name does not tell.
std::string library_by_name(const std::string& symbol);

// Returns the distributions on PyPI that bring a library of CUDA, such as nvidia-cuda-runtime-cu12
// for libcudart.so.12. If one of them is for `cuda` (a version, or empty), returns only that.
std::vector<std::string> cuda_distributions_of(const std::string& library,
                                               const std::string& cuda = "");

// Returns the path without its numbers and without "cpu" or "cuda", so that it is the same for
// libraries of which a program chooses one at run time, for the torch or the FFmpeg that is there.
std::string library_family(const std::string& path);

// Calls `use` for every symbol of every library, with the library that should define an undefined
// one (empty: unknown).
void for_each_symbol(const Item& item,
                     const std::function<void(const LibraryFacts& library, const SymbolFact& symbol,
                                              const std::string& owner)>& use);

}  // namespace wheelscope
