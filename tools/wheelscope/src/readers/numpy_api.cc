// Reads the texts that `import_array()` of NumPy's headers leaves in a library. The headers of
// NumPy 1 import numpy.core._multiarray_umath, which NumPy 2 has only to say that it will not do;
// those of NumPy 2 import numpy._core._multiarray_umath first, and then the other. The names also
// occur in messages and in pickles, so they count only as whole texts, beside the name of the
// capsule, in a library that opens capsules. A module that Cython compiled may use NumPy's types
// alone: it has the error message of NumPy 1's declarations, and does not import the API.
#include "readers/numpy_api.h"

#include <algorithm>

namespace wheelscope {

namespace {

bool imports_api(const Elf& elf, const NumpyApi& api) {
  return (api.one || api.two) && (has_text(elf, "_ARRAY_API") || has_text(elf, "_UFUNC_API")) &&
         std::ranges::any_of(elf.symbols, [](const ElfSymbol& symbol) {
           return !symbol.defined && symbol.name == "PyCapsule_GetPointer";
         });
}

}  // namespace

std::optional<NumpyApi> find_numpy_api(const Elf& elf) {
  NumpyApi api{.one = has_text(elf, "numpy.core._multiarray_umath"),
               .two = has_text(elf, "numpy._core._multiarray_umath")};
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
