// Judges whether a wheel was built for the Python, torch and NumPy that it will meet.
#include <algorithm>
#include <array>
#include <map>

#include "answers/fit_judge.h"
#include "answers/owners.h"
#include "facts/wheel.h"
#include "packaging/requirement.h"
#include "packaging/tag.h"
#include "tables/tables.h"
#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {

// A C++ name that mentions torch's types, and is not in a namespace of torch's (or of the standard
// library, for templates with torch's types): _ZN7another3useEPN3c106TensorE. Without a namespace,
// torch has THPVariable_Wrap and the like.
static bool is_declared_elsewhere(std::string_view symbol) {
  if (!symbol.starts_with("_Z")) return false;
  symbol.remove_prefix(2);
  for (const std::string_view special : {"TV", "TI", "TS", "TT", "GV"}) {
    if (!symbol.starts_with(special)) continue;
    symbol.remove_prefix(special.size());
    break;
  }
  if (symbol.starts_with('N')) {
    symbol.remove_prefix(1);
    if (symbol.starts_with('K')) symbol.remove_prefix(1);
    return !std::ranges::any_of(
        std::array<std::string_view, 5>{"2at", "3c10", "5torch", "6caffe2", "S"},
        [&](std::string_view space) { return symbol.starts_with(space); });
  }
  const auto name = symbol.find_first_not_of("0123456789");
  return name != 0 && name != symbol.npos && !symbol.substr(name).starts_with("THP");
}

bool CandidateJudge::misses_python() {
  auto reason = why_not_python(wheel_, cell_);
  if (!reason || (reason.why == Why::python_built && runs_sources_instead())) return false;
  if (const auto other = module_of_another_python(); !other.empty())
    return stop(Obstacle::python, {.why = Why::python_of_one_module, .who = other}, Fits::depends);
  if (!goes_beyond_limited_api()) return stop(Obstacle::python, std::move(reason));
  return misses_private_symbols();
}

// Python skips modules whose names bind them to another Python, and takes sources beside them.
bool CandidateJudge::runs_sources_instead() const {
  const auto* imports = lookups_.imports ? lookups_.imports() : nullptr;
  return imports && std::ranges::all_of(wheel_.facts.libraries, [&](const LibraryFacts& library) {
           return !library.python_module || imports->runs_source_of(installed_path(library.path));
         });
}

// Finds a file that has a module's name and is imported, but exports nothing that Python could
// call.
bool CandidateJudge::misses_init() {
  const auto* imports = lookups_.imports ? lookups_.imports() : nullptr;
  if (!imports) return false;
  for (const auto& library : wheel_.facts.libraries) {
    const bool is_named_so =
        library.path.find(".cpython-") != std::string::npos || library.path.ends_with(".abi3.so");
    if (library.python_module || !is_named_so || library.machine != machine_.architecture) continue;
    if (imports->imported(installed_path(library.path)) == Need::always)
      return stop(Obstacle::python, {.why = Why::python_no_init, .who = library.path});
  }
  return false;
}

// Returns a module that its file name binds to one Python, among others that are bound to none.
std::string CandidateJudge::module_of_another_python() const {
  std::string bound;
  bool others = false;
  for (const auto& library : wheel_.facts.libraries) {
    if (!library.python_module) continue;
    if (library.path.find(".cpython-") == std::string::npos)
      others = true;
    else
      bound = library.path;
  }
  return others ? bound : "";
}

// True if its tag admits later Pythons, but its modules need what the limited API does not promise
// them.
bool CandidateJudge::goes_beyond_limited_api() const {
  const auto& python = wheel_.verdicts.python;
  return python.abi == PythonAbi::version &&
         std::ranges::any_of(claims_.file_name_tags,
                             [](const auto& tag) { return split_tag(tag).abi == "abi3"; }) &&
         !python.by_file_names;
}

bool CandidateJudge::misses_private_symbols() {
  for (const auto& library : wheel_.facts.libraries) {
    // A library from elsewhere may have names like Python's: PySideSignal_TypeF is PySide's.
    if (std::ranges::any_of(library.needed, [&](const auto& name) {
          return is_external(name) && !is_known_library(name);
        }))
      continue;
    for (const auto& [symbol, needed] : library.python_symbols) {
      if (!needed || python_abi3().contains(symbol)) continue;
      if (!lookups_.python_has)
        return stop(Obstacle::python,
                    {.why = Why::python_private_unsure, .who = library.path, .what = symbol},
                    Fits::depends);
      if (!lookups_.python_has(symbol))
        return stop(Obstacle::python,
                    {.why = Why::python_private, .who = library.path, .what = symbol});
    }
  }
  return false;
}

// True if the wheel needs torch's symbols and does not bring them itself, as torch does, and
// packages that have copies of its code.
bool CandidateJudge::uses_torch() const {
  if (canonical_name(claims_.name) == "torch") return false;
  return std::ranges::any_of(wheel_.facts.libraries,
                             [&](const LibraryFacts& library) { return uses_torch(library); });
}

bool CandidateJudge::uses_torch(const LibraryFacts& library) const {
  return std::ranges::any_of(
             library.needed,
             [&](const std::string& name) { return is_torch_library(name) && !has_file(name); }) ||
         std::ranges::any_of(library.torch_symbols, [&](const auto& symbol) {
           return !inside_.contains(symbol.first) && is_torchs(symbol.first);
         });
}

// Names that mention torch's types may be another library's: they count only if the wheel says that
// it builds on torch.
bool CandidateJudge::is_torchs(const std::string& symbol) const {
  return !requirements_.empty() || torch_shims().contains(symbol) ||
         wheel_.facts.libraries.size() == 1;
}

bool CandidateJudge::misses_torch() {
  if (!machine_.torch) return uses_torch() && misses_any_torch();
  const auto& torch = *machine_.torch;
  if (auto reason = requirements_.why_not(cell_)) {
    reason.version = requirements_.exact();
    reason.here = torch.version;
    return stop(Obstacle::torch, std::move(reason));
  }
  if (!uses_torch()) return false;
  if (lookups_.torch_has) {
    if (misses_symbols()) return true;
    std::vector<const LibraryFacts*> libraries;
    for (const auto& library : wheel_.facts.libraries) libraries.push_back(&library);
    if (const auto* library = of_either_layout(libraries, cell_, requirements_))
      doubt(Obstacle::torch, {.why = Why::torch_layout, .who = library->path});
  } else if (auto reason = why_not_torch(wheel_, cell_, requirements_)) {
    if (reason.why != Why::torch_unsaid) return stop(Obstacle::torch, std::move(reason));
    return misses_symbols() || stop(Obstacle::torch, std::move(reason), Fits::depends);
  }
  const auto* imports = lookups_.imports ? lookups_.imports() : nullptr;
  if (imports && !imports->asks_for_cuda().empty() && !lookups_.same_cuda_as_index)
    doubt(Obstacle::torch, {.why = Why::torch_asked, .who = imports->asks_for_cuda()});
  return false;
}

bool CandidateJudge::misses_any_torch() {
  if (requirements_.empty()) return misses_unrequired_torch();
  const auto exact = requirements_.exact();
  if (exact.empty() && wheel_.verdicts.torch.abi == TorchAbi::cxx)
    return stop(Obstacle::torch, {.why = Why::torch_unsaid}, Fits::depends);
  verdict_.notes.push_back("installs torch" + (exact.empty() ? "" : " " + exact));
  return false;
}

// A package that does not require torch may have a part for it that its import leaves alone: the
// tensors of cuda-core.
bool CandidateJudge::misses_unrequired_torch() {
  auto need = Need::never;
  std::string part;
  for (const auto& library : wheel_.facts.libraries) {
    if (!uses_torch(library)) continue;
    part = base_name(library.path);
    need = std::max(need, need_of_any_user(library, true));
  }
  Reason reason{.why = Why::torch_absent};
  if (need == Need::always) return stop(Obstacle::torch, std::move(reason));
  if (need == Need::depends) doubt(Obstacle::torch, std::move(reason));
  if (need == Need::never)
    verdict_.notes.push_back("an optional part does not load: " + part +
                             " needs torch, which is not here");
  return false;
}

// Asks torch's libraries if they were read. For a torch that is still to be installed, only symbols
// that came or went are known, and only those that many extensions use.
bool CandidateJudge::torch_has(const std::string& symbol) const {
  if (lookups_.torch_has) return lookups_.torch_has(symbol);
  const auto known = torch_symbols().find(symbol);
  if (known == torch_symbols().end() || machine_.architecture != "x86_64" ||
      machine_.torch->cxx11_abi)
    return true;
  const auto& [first, last] = known->second;
  const auto minor = minor_of(machine_.torch->version);
  return !older(minor, first) && (last.empty() || !older(last, minor));
}

// Finds symbols that neither torch's own libraries nor the wheel's define. Of libraries that differ
// by numbers (torch-2.9/x.so, torch-2.10/x.so), one that lacks nothing is enough.
bool CandidateJudge::misses_symbols() {
  std::map<std::string, Reason> lacking;  // by the path without numbers
  for (const auto& library : wheel_.facts.libraries) {
    if (!std::ranges::any_of(library.needed, is_torch_library) && !library.python_module) continue;
    Reason reason;
    for (const auto& [symbol, needed] : library.torch_symbols) {
      if (!needed || inside_.contains(symbol) || torch_has(symbol) || is_declared_elsewhere(symbol))
        continue;
      reason = {.why = Why::torch_symbol,
                .who = library.path,
                .what = symbol,
                .version = requirements_.exact(),
                .here = machine_.torch->version};
      break;
    }
    const auto [known, is_new] = lacking.try_emplace(without_digits(library.path), reason);
    if (!is_new && !reason) known->second = {};
  }
  for (auto& [family, reason] : lacking) {
    if (reason) return stop(Obstacle::torch, std::move(reason));
  }
  return false;
}

// Finds modules that were built for another NumPy than they will meet. A library that is not a
// module imports NumPy's API when something calls it, and may go on without.
bool CandidateJudge::misses_numpy() {
  if (canonical_name(claims_.name) == "numpy" || !lookups_.numpy) return false;
  for (const auto& library : wheel_.facts.libraries) {
    if (!library.numpy || library.machine != machine_.architecture) continue;
    Reason reason;
    bool is_sure = true;  // whichever NumPy it will be
    for (const auto& [version, because] : lookups_.numpy()) {
      const auto why = why_not_numpy(*library.numpy, version);
      is_sure &= why != Why::none;
      if (why != Why::none)
        reason = {.why = why,
                  .who = library.path,
                  .what = because,
                  .version = library.numpy->min,
                  .here = version};
    }
    if (!reason) continue;
    auto need = library.python_module ? need_of(library, true) : Need::depends;
    if (!is_sure) need = std::min(need, Need::depends);
    if (need == Need::always) return stop(Obstacle::numpy, std::move(reason));
    if (need == Need::depends) doubt(Obstacle::numpy, std::move(reason));
  }
  return false;
}

}  // namespace wheelscope
