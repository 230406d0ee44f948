// The distributions that are installed in an environment: their dist-info folders, and what they
// say. PyPA's specification "Recording installed projects" describes them.
#pragma once

#include <string>
#include <vector>

#include "facts/machine.h"

namespace wheelscope {

struct Distribution {
  std::string name, version;  // the name as canonical_name spells it
  std::string folder;         // that it is installed in: a site-packages folder
  std::string dist_info;      // the path of its dist-info folder
};

// Of several with the same name, the first on Python's path; sorted by name.
std::vector<Distribution> list_distributions(const std::vector<std::string>& site_packages);

// The shared libraries that its RECORD names, as paths. Empty: there is none, or no RECORD.
std::vector<std::string> shared_libraries_of(const Distribution& distribution);

// The torch package on the path, from its files; torch is not imported.
std::optional<TorchFacts> find_torch(const std::vector<std::string>& site_packages);

// The libraries of CUDA that NVIDIA's distributions and torch's own folder bring.
std::vector<CudaLibraryFacts> find_cuda_libraries(const std::vector<std::string>& site_packages,
                                                  const std::optional<TorchFacts>& torch);

}  // namespace wheelscope
