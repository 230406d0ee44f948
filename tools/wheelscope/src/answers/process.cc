// Loads what Python's program and `import torch` load. torch opens libtorch_global_deps.so for all
// to see, and where a library of CUDA is not found that way, those of the nvidia distributions one
// by one; then its module _C.
#include "answers/process.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "text/text.h"

namespace wheelscope {
namespace {

LoaderWorld world_of(const MachineFacts& machine, Disk& disk) {
  auto world = disk.world(machine.architecture);
  if (const char* path = std::getenv("LD_LIBRARY_PATH"); path && *path)
    world.library_path = split(path, ':');
  return world;
}

std::string module_of(const std::string& folder, const std::string& name) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto file = entry.path().filename().string();
    if (file.starts_with(name + ".") && file.ends_with(".so")) return entry.path().string();
  }
  return {};
}

}  // namespace

PythonProcess::PythonProcess(const MachineFacts& machine, Disk& disk, bool torch)
    : loader_(world_of(machine, disk)) {
  std::error_code error;
  loader_.start(std::filesystem::canonical(machine.python->executable, error).string());
  if (torch && machine.torch) import_torch(machine);
  started_ = loader_.count();
}

void PythonProcess::import_torch(const MachineFacts& machine) {
  const auto before = loader_.count();
  const auto dependencies = machine.torch->path + "/lib/libtorch_global_deps.so";
  if (!loader_.open(dependencies, true).missing_libraries.empty()) {
    loader_.unload_after(before);
    for (const auto& library : machine.cuda_libraries) loader_.open(library.path);
    loader_.open(dependencies, true);
  }
  if (const auto module = module_of(machine.torch->path, "_C"); !module.empty())
    loader_.open(module);
}

Opening PythonProcess::open(const std::string& path, const std::vector<std::string>& before) {
  loader_.unload_after(started_);
  for (const auto& library : before) loader_.open(library);
  return loader_.open(path);
}

}  // namespace wheelscope
