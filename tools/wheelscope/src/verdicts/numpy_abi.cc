// Judges NumPy's ABI: modules built with the headers of NumPy 1 fail beside NumPy 2, those built
// with the headers of NumPy 2 run beside both, from the version that they were told to support.
#include "verdicts/verdicts.h"

#include <algorithm>

#include "text/text.h"

namespace wheelscope {

NumpyVerdict judge_numpy(const std::vector<LibraryFacts>& libraries) {
  NumpyVerdict verdict;
  std::map<NumpyAbi, std::vector<std::string>> kinds;
  for (const auto& library : libraries) {
    if (!library.numpy) continue;
    const auto& api = *library.numpy;
    kinds[!api.two  ? NumpyAbi::one
          : api.one ? NumpyAbi::both
                    : NumpyAbi::two]
        .push_back(library.path);
    if (!api.min.empty() && (!verdict.min || older(*verdict.min, api.min))) verdict.min = api.min;
  }
  if (kinds.empty()) return verdict;
  verdict.abi = kinds.begin()->first;
  verdict.libraries = kinds.begin()->second;
  return verdict;
}

NumpyClash clash_with_numpy(const NumpyApi& api, const std::string& version) {
  if (version.empty()) return NumpyClash::none;
  const bool is_one = older(version, "2");
  if (!is_one && !api.two)
    return api.checks_sizes ? NumpyClash::old_types : NumpyClash::old_headers;
  if (is_one && !api.one) return NumpyClash::new_headers;
  return !api.min.empty() && older(version, api.min) ? NumpyClash::new_functions : NumpyClash::none;
}

}  // namespace wheelscope
