// Judges the ABIs of Python, torch and NumPy.
//
// Python: a module that needs only symbols of the limited API runs on every Python from the one
// that has them all; a module whose name or symbols go beyond it is bound to one version. A wheel
// may have a module for each of several Pythons.
//
// torch: C shims are stable and each has a first version; a C++ name binds to the torch that built
// it.
//
// NumPy: modules built with the headers of NumPy 1 fail with NumPy 2; those built with the headers
// of NumPy 2 work with both, from the oldest version that they were told to support.

#include <algorithm>
#include <array>

#include "facts/facts.h"
#include "packaging/tag.h"
#include "tables/tables.h"
#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {
namespace {

// Returns 3.11 for x.cpython-311-x86_64-linux-gnu.so, 3.14t for x.cpython-314t-...; empty without
// such a suffix.
std::string version_in_file_name(std::string_view path) {
  constexpr std::string_view mark = ".cpython-";
  const auto at = path.rfind(mark);
  if (at == path.npos) return {};
  const auto tag = path.substr(at + mark.size());
  return python_version_of_tag(tag.substr(0, tag.find_first_of("-.")));
}

// Returns the Pythons that the wheel's tags name with their own ABI.
std::set<std::string> versions_of_tags(const std::optional<WheelClaims>& wheel) {
  std::set<std::string> versions;
  if (!wheel) return versions;
  for (const auto& text : wheel->file_name_tags) {
    const auto tag = split_tag(text);
    if (!tag.python.starts_with("cp")) continue;
    if (tag.abi.starts_with(tag.python))
      versions.insert(python_version_of_tag(tag.abi.substr(2)));
    else if (tag.abi == "none" && tag.python.size() > 3)  // cp311-none: one Python, by its name
      versions.insert(python_version_of_tag(tag.python.substr(2)));
  }
  return versions;
}

void bind_to(const std::set<std::string>& versions, PythonVerdict& verdict) {
  verdict.abi = PythonAbi::version;
  verdict.versions.assign(versions.begin(), versions.end());
  std::ranges::sort(verdict.versions, [](const auto& a, const auto& b) {
    return older(a, b) || (!older(b, a) && a < b);
  });
  if (verdict.versions.empty()) return;
  const auto& oldest = verdict.versions.front();  // 3.14t, or 3.7m and 2.7mu for old Pythons
  verdict.min = oldest.substr(0, oldest.find_first_not_of("0123456789."));
}

// Judges by its tags a wheel without modules that can be judged here (for another system).
PythonVerdict judge_by_tags(const WheelClaims& wheel) {
  PythonVerdict verdict;
  for (const auto& text : wheel.file_name_tags) {
    const auto tag = split_tag(text);
    if (is_linux_or_any(tag.platform)) return {};
    const auto why = "the wheel is tagged " + tag.python + "-" + tag.abi;
    if ((tag.abi == "abi3" || tag.abi == "abi3t") && tag.python.size() > 2)
      verdict = {.abi = tag.abi == "abi3" ? PythonAbi::abi3 : PythonAbi::abi3t,
                 .min = python_version_of_tag(tag.python.substr(2)),
                 .because = {why}};
    else if (tag.abi.starts_with("cp"))
      verdict.because = {why};
  }
  if (const auto versions = versions_of_tags(wheel); !versions.empty()) bind_to(versions, verdict);
  return verdict;
}

bool provides_torch(const LibraryFacts& library) {
  return base_name(library.path) == "libtorch_cpu.so" || library.soname == "libtorch_cpu.so";
}

}  // namespace

PythonVerdict judge_python(const std::vector<LibraryFacts>& libraries,
                           const std::optional<WheelClaims>& wheel) {
  // Static libraries and other systems' modules, which are not read here, bind to nothing by
  // themselves.
  if (wheel && std::ranges::none_of(libraries, &LibraryFacts::loadable))
    return judge_by_tags(*wheel);
  PythonVerdict verdict;
  std::set<std::string> versions, private_symbols;
  std::map<std::string, std::set<std::string>> limited;  // first version -> symbols
  bool modules = false, all_abi3t = true, needs_slots = false;
  // Binding libraries give their own functions names like Python's. A Python inside the wheel does
  // not count: another one loads the modules.
  std::set<std::string_view> inside;
  for (const auto& library : libraries) {
    if (!base_name(library.path).starts_with("libpython"))
      inside.insert(library.python_like_exports.begin(), library.python_like_exports.end());
  }
  for (const auto& library : libraries) {
    if (!library.loadable()) continue;
    if (library.python_module) {
      modules = true;
      all_abi3t &= library.path.ends_with(".abi3t.so");
      needs_slots |= library.exports_slots && !library.exports_init;
      // Only a module: Python does not look for other libraries by name.
      if (const auto named = version_in_file_name(library.path); !named.empty())
        versions.insert(named);
    }
    for (const auto& [symbol, needed] : library.python_symbols) {
      if (!needed || inside.contains(symbol)) continue;
      const auto found = python_abi3().find(symbol);
      if (found == python_abi3().end())
        private_symbols.insert(symbol);
      else
        limited[std::string(found->second)].insert(symbol);
    }
  }
  if (!versions.empty() || !private_symbols.empty()) {
    verdict.by_file_names = !versions.empty();
    for (const auto& version : versions)
      verdict.because.push_back("a file is named for Python " + version);
    for (const auto& symbol : private_symbols)
      verdict.because.push_back(symbol + " is not part of the limited API");
    if (versions.empty()) {
      versions = versions_of_tags(wheel);
      for (const auto& version : versions)
        verdict.because.push_back("the wheel is tagged for Python " + version);
    }
    bind_to(versions, verdict);
  } else if (!limited.empty() || modules) {
    verdict.abi = modules && all_abi3t ? PythonAbi::abi3t : PythonAbi::abi3;
    const auto newest =
        std::ranges::max_element(limited, older, [](const auto& entry) { return entry.first; });
    verdict.min = newest == limited.end() ? "3.2" : newest->first;
    if (newest != limited.end()) {
      verdict.newest_symbol = *newest->second.begin();
      for (const auto& symbol : newest->second)
        verdict.because.push_back(symbol + " exists since Python " + newest->first);
    }
    constexpr const char* first_with_slots = "3.15";
    if (needs_slots && older(*verdict.min, first_with_slots)) {
      verdict.min = first_with_slots;
      verdict.needs_slots = true;
      verdict.because = {"a module is exported by PyModExport_, which Python reads since 3.15"};
    }
  }
  return verdict;
}

PythonServes serves_python(const PythonVerdict& verdict, const std::string& python) {
  switch (verdict.abi) {
    case PythonAbi::none:
      return PythonServes::yes;
    case PythonAbi::abi3:
    case PythonAbi::abi3t:
      return verdict.min && older(PythonBuild(python).version, *verdict.min)
                 ? PythonServes::is_older
                 : PythonServes::yes;
    default:
      if (verdict.versions.empty()) return PythonServes::not_said;
      return contains(verdict.versions, python) ? PythonServes::yes : PythonServes::is_another;
  }
}

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

}  // namespace wheelscope
