// Judges the Python ABI. A module that needs only symbols of the limited API runs on every Python
// from the one that has them all; a module whose name or symbols go beyond it is bound to one
// version.
#include "python_abi.h"

#include <algorithm>

#include "tables.h"
#include "version.h"

namespace wheelscope {
namespace {

// 3.11 from x.cpython-311-x86_64-linux-gnu.so, 3.14t from x.cpython-314t-...; empty without such a
// suffix.
std::string version_in_file_name(std::string_view path) {
  constexpr std::string_view mark = ".cpython-";
  const auto at = path.rfind(mark);
  if (at == path.npos) return {};
  const auto tag = path.substr(at + mark.size());
  return python_version_of_tag(tag.substr(0, tag.find_first_of("-.")));
}

}  // namespace

PythonVerdict judge_python(const std::vector<LibraryFacts>& libraries) {
  PythonVerdict verdict;
  std::set<std::string> versions, private_symbols;
  std::map<std::string, std::set<std::string>> limited;  // first version -> symbols
  for (const auto& library : libraries) {
    const auto named = version_in_file_name(library.path);
    if (!named.empty() && library.python_module)
      versions.insert(named);  // else Python does not look for it by name
    for (const auto& [symbol, needed] : library.python_symbols) {
      if (!needed) continue;
      const auto found = python_abi3().find(symbol);
      if (found == python_abi3().end())
        private_symbols.insert(symbol);
      else
        limited[std::string(found->second)].insert(symbol);
    }
  }
  if (!versions.empty() || !private_symbols.empty()) {
    verdict.kind = "version";
    if (!versions.empty()) verdict.min = *std::ranges::min_element(versions, older);
    for (const auto& version : versions)
      verdict.because.push_back("a file is named for Python " + version);
    for (const auto& symbol : private_symbols)
      verdict.because.push_back(symbol + " is not part of the limited API");
  } else if (!limited.empty()) {
    verdict.kind = "abi3";
    const auto newest =
        std::ranges::max_element(limited, older, [](const auto& entry) { return entry.first; });
    verdict.min = newest->first;
    for (const auto& symbol : newest->second)
      verdict.because.push_back(symbol + " exists since Python " + newest->first);
  }
  return verdict;
}

}  // namespace wheelscope
