// Judges the torch ABI: C shims are stable and each has a first version; a C++ name binds to the
// torch that built it.
#include "verdicts/verdicts.h"

#include <algorithm>
#include <array>

#include "facts/facts.h"
#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {
namespace {

bool provides_torch(const LibraryFacts& library) {
  return base_name(library.path) == "libtorch_cpu.so" || library.soname == "libtorch_cpu.so";
}

}  // namespace

TorchVerdict judge_torch(const std::vector<LibraryFacts>& libraries) {
  TorchVerdict verdict;
  if (std::ranges::any_of(libraries, provides_torch)) return verdict;  // torch itself
  std::set<std::string> bound, unknown;
  std::map<std::string, std::set<std::string>> shims;  // first version -> symbols
  bool uses_shims = false;
  for (const auto& library : libraries) {
    for (const auto& [symbol, needed] : library.torch_symbols) {
      if (!is_torch_shim(symbol)) {
        bound.insert(symbol);
        continue;
      }
      uses_shims = true;
      if (!needed) continue;  // weak: the library copes without it
      const auto shim = torch_shims().find(symbol);
      if (shim == torch_shims().end())
        unknown.insert(symbol);
      else
        shims[std::string(shim->second.first_version)].insert(symbol);
    }
  }
  verdict.unknown.assign(unknown.begin(), unknown.end());
  if (!bound.empty()) {
    verdict.abi = TorchAbi::cxx;
    verdict.symbols.assign(bound.begin(), bound.end());
  } else if (uses_shims) {
    verdict.abi = TorchAbi::stable;
    const auto newest =
        std::ranges::max_element(shims, older, [](const auto& entry) { return entry.first; });
    if (newest != shims.end()) {
      verdict.min = newest->first;
      verdict.symbols.assign(newest->second.begin(), newest->second.end());
    }
  }
  return verdict;
}

}  // namespace wheelscope
