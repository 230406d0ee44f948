// Finds the traces that headers and static libraries leave in a library.
//
// A static CUDA runtime and its version are found by two independent traces (data/README.md
// explains the table): texts that came with each minor version, and the constant in
// cudaRuntimeGetVersion's code. Each alone may mislead: a profiler contains names of newer
// functions, and cuFFT has a function of the same shape. So the constant must agree with the texts.
//
// `import_array()` of NumPy's headers leaves texts. The headers of NumPy 1 import
// numpy.core._multiarray_umath (before 1.16: numpy.core.multiarray, as pybind11 does, which fits
// NumPy 2 as well), which NumPy 2 has only to say that it will not do; those of NumPy 2
// import numpy._core._multiarray_umath first, and then the other. The names also occur in messages
// and in pickles, so they count only as whole texts, beside the name of the capsule, in a library
// that opens capsules. A module that Cython compiled may use NumPy's types alone: it has the error
// message of NumPy 1's declarations, and does not import the API.
#include "readers/traces.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {
namespace {

std::optional<std::uint32_t> constant_of(std::uint32_t word, const std::string& machine) {
  if (machine == "x86_64") return word;
  if ((word & 0xffe0001f) == 0x52800002) return word >> 5 & 0xffff;  // mov w2, #constant
  return std::nullopt;
}

// Returns the versions that functions shaped like cudaRuntimeGetVersion return.
std::set<std::string> versions_in_code(const Elf& elf) {
  std::set<std::string> versions;
  const auto machine = machine_name(elf);
  const auto& codes = cudart_table().code;
  const auto code = codes.find(machine);
  if (code == codes.end()) return versions;
  const auto& [before, after] = code->second;
  for (const auto& section : elf.sections) {
    if (!section.name.starts_with(".text")) continue;
    const auto data = section.data.whole("code");
    if (!data) continue;
    const auto text = data->text();
    for (auto at = find_in(text, before); at != text.npos; at = find_in(text, before, at + 1)) {
      const auto word = data->slice(at + before.size(), 4, "version constant");
      if (!word || text.substr(at + before.size() + 4, after.size()) != after) continue;
      const auto constant = constant_of(word->u32(0), machine).value_or(0);
      if (constant < 9000 || constant > 99000 || constant % 10 != 0) continue;
      versions.insert(std::to_string(constant / 1000) + "." + std::to_string(constant % 1000 / 10));
    }
  }
  return versions;
}

bool adjacent(const std::string& minor, const std::string& next) {
  const auto dot = minor.find('.');
  return next == minor.substr(0, dot + 1) + std::to_string(std::stoi(minor.substr(dot + 1)) + 1);
}

bool imports_api(const Elf& elf, const NumpyApi& api) {
  return (api.one || api.two) && (has_text(elf, "_ARRAY_API") || has_text(elf, "_UFUNC_API")) &&
         std::ranges::any_of(elf.symbols, [](const ElfSymbol& symbol) {
           return !symbol.defined && symbol.name == "PyCapsule_GetPointer";
         });
}

}  // namespace

std::optional<StaticCudart> find_static_cudart(const Elf& elf) {
  const auto& table = cudart_table();
  if (elf.soname.starts_with("libcudart") || !has_text(elf, table.present)) return std::nullopt;
  StaticCudart cudart{.evidence = {"has the text \"" + table.present + "\""}};

  const CudartTable::Minor *lowest = nullptr,
                           *next = nullptr;  // lowest <= version < next; null: no bound
  for (const auto& minor : table.minors) {
    const auto absent = std::ranges::find_if(
        minor.markers, [&](const std::string& marker) { return !has_text(elf, marker); });
    if (absent == minor.markers.end()) {
      lowest = &minor;
      continue;
    }
    next = &minor;
    cudart.evidence.push_back("lacks the text \"" + *absent + "\", new in CUDA " + next->version);
    break;
  }
  if (lowest)
    cudart.evidence.push_back("has the text \"" + lowest->markers.front() + "\", new in CUDA " +
                              lowest->version);
  for (const auto& version : versions_in_code(elf)) {
    if ((lowest && older(version, lowest->version)) || (next && !older(version, next->version)))
      continue;
    cudart.version = version;
    cudart.evidence.push_back("has code that returns CUDA " + version + " as its runtime version");
  }
  if (cudart.version.empty() && lowest && next && adjacent(lowest->version, next->version))
    cudart.version = lowest->version;
  return cudart;
}

std::optional<NumpyApi> find_numpy_api(const Elf& elf) {
  NumpyApi api{.one = has_text(elf, "numpy.core._multiarray_umath"),
               .two = has_text(elf, "numpy._core._multiarray_umath")};
  api.one |= !api.two && has_text(elf, "numpy.core.multiarray") &&
             has_text(elf, "_ARRAY_API is not PyCapsule object");
  api.checks_sizes =
      has_text(elf, "dtype") &&
      !text_after(elf, "size changed, may indicate binary incompatibility. ").empty();
  if (!imports_api(elf, api)) {
    if (!api.checks_sizes || !has_text(elf, "numpy.core.multiarray failed to import"))
      return std::nullopt;
    return NumpyApi{.one = true, .checks_sizes = true};
  }
  const auto version =
      text_after(elf, "module was compiled against NumPy C-API version 0x%x (NumPy ");
  api.min = version.substr(0, version.find(')'));
  if (api.min.find_first_not_of("0123456789.") != std::string::npos) api.min.clear();
  return api;
}

}  // namespace wheelscope
