// Asks one supplier after the other.
#include "answers/lookups.h"

#include <algorithm>

#include "answers/owners.h"
#include "packaging/requirement.h"
#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {

bool LibrarySources::requires_any(const std::vector<std::string>& distributions) const {
  const auto python = machine_.python ? machine_.python->minor() : std::string();
  const auto environment = linux_environment(python, machine_.architecture);
  return std::ranges::any_of(wheel_.requires_dist, [&](const std::string& text) {
    const auto requirement = parse_requirement(text);
    return contains(distributions, canonical_name(requirement.name)) &&
           holds(requirement.marker, environment) == true;
  });
}

// Its distributions of CUDA are all for one major version.
bool LibrarySources::torch_brings(const std::string& name) const {
  if (!machine_.torch) return false;
  const auto major = machine_.torch->cuda.substr(0, machine_.torch->cuda.find('.'));
  const auto [first, last] = cuda_libraries().equal_range(name);
  return std::any_of(first, last, [&](const auto& entry) { return entry.second.cuda == major; });
}

Brought LibrarySources::brings(const std::string& name) const {
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

bool is_torch_library(std::string_view name) {
  return name.starts_with("libtorch") || name.starts_with("libc10") ||
         name.starts_with("libshm.so");
}

bool is_known_library(const std::string& name) {
  return is_platform_library(name) || is_driver_library(name) || cuda_libraries().contains(name) ||
         is_torch_library(name) || name.starts_with("libpython");
}

}  // namespace wheelscope
