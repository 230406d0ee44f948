// Reads the texts that `import_array()` of NumPy's headers leaves in a library. The headers of
// NumPy 1 import numpy.core._multiarray_umath, which NumPy 2 has only to say that it will not do;
// those of NumPy 2 import numpy._core._multiarray_umath first, and then the other. The names also
// occur in messages and in pickles, so they count only as whole texts, beside the name of the
// capsule, in a library that opens capsules.
#include "readers/numpy_api.h"

#include <algorithm>

namespace wheelscope {

std::optional<NumpyApi> find_numpy_api(const Elf& elf) {
  const bool opens_capsules = std::ranges::any_of(elf.symbols, [](const ElfSymbol& symbol) {
    return !symbol.defined && symbol.name == "PyCapsule_GetPointer";
  });
  if (!opens_capsules) return std::nullopt;
  NumpyApi api{.one = has_text(elf, "numpy.core._multiarray_umath"),
               .two = has_text(elf, "numpy._core._multiarray_umath")};
  if ((!api.one && !api.two) || (!has_text(elf, "_ARRAY_API") && !has_text(elf, "_UFUNC_API")))
    return std::nullopt;
  api.checks_sizes =
      has_text(elf, "dtype") &&
      !text_after(elf, "size changed, may indicate binary incompatibility. ").empty();
  const auto version =
      text_after(elf, "module was compiled against NumPy C-API version 0x%x (NumPy ");
  api.min = version.substr(0, version.find(')'));
  if (api.min.find_first_not_of("0123456789.") != std::string::npos) api.min.clear();
  return api;
}

}  // namespace wheelscope
