// Which NumPy a wheel's modules run beside, from what they look for at run time.
#pragma once

#include "verdicts/verdicts.h"

namespace wheelscope {

NumpyVerdict judge_numpy(const std::vector<LibraryFacts>& libraries);

// How a library goes with a version of NumPy, by the texts of its headers.
//   old_headers   built for NumPy 1; `import_array()` fails beside NumPy 2
//   old_types     the same of Cython's: the import itself fails, as NumPy's types have shrunk
//   new_headers   built for NumPy 2 alone, beside NumPy 1
//   new_functions it may use functions that this NumPy does not have; `import_array()` refuses
enum class NumpyClash { none, old_headers, old_types, new_headers, new_functions };

NumpyClash clash_with_numpy(const NumpyApi& api, const std::string& version);

}  // namespace wheelscope
