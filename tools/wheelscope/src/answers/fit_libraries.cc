// Judges whether the libraries that a wheel needs from elsewhere will be present.
#include <algorithm>
#include <map>

#include "answers/fit_judge.h"
#include "answers/owners.h"
#include "facts/wheel.h"
#include "packaging/requirement.h"
#include "tables/tables.h"
#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {

bool CandidateJudge::requires_any(const std::vector<std::string>& distributions) const {
  const auto python = machine_.python ? machine_.python->minor() : std::string();
  const auto environment = linux_environment(python, machine_.architecture);
  return std::ranges::any_of(claims_.requires_dist, [&](const std::string& text) {
    const auto requirement = parse_requirement(text);
    return contains(distributions, canonical_name(requirement.name)) &&
           holds(requirement.marker, environment) == true;
  });
}

// torch's distributions of CUDA are all for one major version.
bool CandidateJudge::torch_brings(const std::string& name) const {
  if (!machine_.torch) return false;
  const auto major = major_of(machine_.torch->cuda);
  const auto [first, last] = cuda_libraries().equal_range(name);
  return std::any_of(first, last, [&](const auto& entry) { return entry.second.cuda == major; });
}

// Tells whether the system, the driver, torch or a required distribution brings the library.
Brought CandidateJudge::brought(const std::string& name) const {
  if (is_platform_library(name)) return Brought::yes;
  if (is_torch_library(name)) {
    if (!machine_.torch) return requires_any({"torch"}) ? Brought::yes : Brought::no;
    const bool cuda = name.find("cuda") != name.npos;
    return cuda && machine_.torch->cuda.empty() ? Brought::no : Brought::yes;
  }
  if (is_driver_library(name)) return machine_.driver.empty() ? Brought::no : Brought::yes;
  if (contains(machine_.cuda_libraries, name, &CudaLibraryFacts::name) || torch_brings(name) ||
      requires_any(cuda_distributions_of(name)))
    return Brought::yes;
  const bool of_cuda = cuda_libraries().contains(name);
  if (of_cuda && !machine_.torch && requires_any({"torch"}) && !lookups_.required_wheels)
    return Brought::unknown;
  if (lookups_.system_library && lookups_.system_library(name)) return Brought::yes;
  const auto required = lookups_.required_wheels ? lookups_.required_wheels(name) : Brought::no;
  if (required != Brought::no) return required;
  return lookups_.system_library || of_cuda ? Brought::no : Brought::unknown;
}

// Tells whether an import fails if a library does not load. Without the wheel's Python code, all
// that is known is that modules are imported, and other libraries may be.
Need CandidateJudge::need_of(const LibraryFacts& library, bool is_opened) const {
  const auto* imports = lookups_.imports ? lookups_.imports() : nullptr;
  if (imports) return imports->need_of(installed_path(library.path), library.python_module);
  return is_opened ? Need::always : Need::depends;
}

// Returns the libraries that Python opens itself, and what those need. Others are opened by code
// that may do without.
std::set<std::string> CandidateJudge::opened() const {
  std::map<std::string, const LibraryFacts*> by_name;
  std::vector<const LibraryFacts*> waiting;
  bool modules = false;
  for (const auto& library : wheel_.facts.libraries) {
    by_name[base_name(library.path)] = &library;
    if (!library.soname.empty()) by_name.try_emplace(library.soname, &library);
    modules |= library.python_module;
  }
  for (const auto& library : wheel_.facts.libraries) {
    if (library.loadable() && (library.python_module || !modules)) waiting.push_back(&library);
  }
  std::set<std::string> paths;
  while (!waiting.empty()) {
    const auto* library = waiting.back();
    waiting.pop_back();
    if (!paths.insert(library->path).second) continue;
    for (const auto& name : library->needed) {
      if (const auto found = by_name.find(name); found != by_name.end())
        waiting.push_back(found->second);
    }
  }
  return paths;
}

// True for a library that others can replace: of several that differ by numbers or by cpu and cuda,
// one is chosen at run time.
bool CandidateJudge::is_one_of_several(const LibraryFacts& library) {
  return std::ranges::any_of(wheel_.facts.libraries, [&](const LibraryFacts& other) {
    return &other != &library && other.loadable() &&
           library_family(other.path) == library_family(library.path) &&
           std::ranges::all_of(other.needed, [&](const std::string& name) {
             return !is_external(name) || brought(name) == Brought::yes;
           });
  });
}

bool CandidateJudge::is_external(const std::string& name) const {
  const auto& external = wheel_.verdicts.platform.external_libraries;
  return contains(external, name);
}

// A module that code of the package chooses among several, as its name is none that Python itself
// would import: MPI.mpich.cpython-311-x86_64-linux-gnu.so
static bool is_variant(const LibraryFacts& library) {
  const auto name = base_name(library.path);
  const auto mark = name.find(".cpython-");
  return library.python_module && mark != name.npos && name.find('.') < mark;
}

bool CandidateJudge::misses_libraries() {
  const auto must_load = opened();
  std::size_t variants = 0, lacking = 0;
  Reason lacks;
  for (const auto& library : wheel_.facts.libraries) {
    if (!library.loadable() || library.machine != machine_.architecture) continue;
    const bool sure = must_load.contains(library.path);
    bool lacks_one = false;
    for (const auto& name : library.needed) {
      if (!is_external(name)) continue;
      const auto brought = this->brought(name);
      if (brought == Brought::yes) continue;
      if (misses_library(library, name, brought, sure)) return true;
      lacks_one = true;
      lacks = {.why = Why::library_unopened, .who = library.path, .what = name};
    }
    variants += is_variant(library);
    lacking += is_variant(library) && lacks_one;
    if (sure && misses_versions(library)) return true;
  }
  if (variants > 0 && lacking == variants) doubt(Obstacle::library, lacks);
  return false;
}

bool CandidateJudge::misses_library(const LibraryFacts& library, const std::string& name,
                                    Brought brought, bool sure) {
  const bool of_cuda = cuda_libraries().contains(name);
  const bool by_torch = machine_.torch && of_cuda;
  Reason reason{.why = by_torch                 ? Why::library_of_cuda
                       : brought == Brought::no ? Why::library_absent
                       : of_cuda                ? Why::library_of_later_torch
                                                : Why::library_of_system,
                .who = library.path,
                .what = name,
                .here = by_torch ? cell_.cuda : ""};
  if (!library.python_module && is_one_of_several(library)) return false;
  auto need = need_of_any_user(library, sure);
  if (need == Need::never) {
    verdict_.notes.push_back("an optional part does not load: " + base_name(library.path) +
                             " needs " + name);
    return false;
  }
  const auto obstacle = by_torch ? Obstacle::cuda : Obstacle::library;
  if (need == Need::always && brought == Brought::no) return stop(obstacle, std::move(reason));
  if (need == Need::depends && brought == Brought::no && !by_torch)
    reason.why = Why::library_unopened;
  doubt(obstacle, std::move(reason));
  return false;
}

// If modules need a library, the surest of them counts.
Need CandidateJudge::need_of_any_user(const LibraryFacts& library, bool sure) const {
  auto need = need_of(library, sure);
  if (library.python_module) return need;
  bool used = false;
  auto most = Need::never;
  for (const auto& user : wheel_.facts.libraries) {
    if (!user.python_module || !leads_to(user, library)) continue;
    used = true;
    most = std::max(most, need_of(user, true));
  }
  return used ? std::max(most, need == Need::depends ? Need::never : need) : need;
}

bool CandidateJudge::leads_to(const LibraryFacts& user, const LibraryFacts& wanted) const {
  std::set<const LibraryFacts*> seen{&user};
  std::vector<const LibraryFacts*> waiting{&user};
  while (!waiting.empty()) {
    const auto* next = waiting.back();
    waiting.pop_back();
    if (next == &wanted) return true;
    for (const auto& other : wheel_.facts.libraries) {
      const auto& name = other.soname.empty() ? base_name(other.path) : other.soname;
      if ((contains(next->needed, name) || contains(next->needed, base_name(other.path))) &&
          seen.insert(&other).second)
        waiting.push_back(&other);
    }
  }
  return false;
}

// Finds versions of symbols that the system's libraries do not have: libstdc++'s, for example.
bool CandidateJudge::misses_versions(const LibraryFacts& library) {
  if (!lookups_.system_library) {
    doubt_versions(library);
    return false;
  }
  for (const auto& [name, versions] : library.version_needs) {
    if (!is_platform_library(name)) continue;
    const auto* provider = lookups_.system_library(name);
    if (!provider || provider->version_definitions.empty()) continue;
    for (const auto& version : versions) {
      if (provider->version_definitions.contains(version)) continue;
      return stop(
          Obstacle::system,
          {.why = Why::symbol_version, .who = library.path, .what = name, .version = version});
    }
  }
  return false;
}

bool CandidateJudge::has_file(const std::string& name) const {
  return std::ranges::any_of(wheel_.facts.libraries, [&](const LibraryFacts& library) {
    return base_name(library.path) == name;
  });
}

// Only the C library of a saved machine is known: its system is taken to have what was released
// with that.
void CandidateJudge::doubt_versions(const LibraryFacts& library) {
  if (machine_.libc != "glibc") return;
  for (const auto& [name, versions] : library.version_needs) {
    if (!is_platform_library(name) || has_file(name)) continue;
    for (const auto& version : versions) {
      if (!older(machine_.libc_version, glibc_beside(version, machine_.architecture))) continue;
      doubt(Obstacle::library, {.why = Why::symbol_version_unsure,
                                .who = library.path,
                                .what = name,
                                .version = version,
                                .here = machine_.libc_version});
    }
  }
}

}  // namespace wheelscope
