// Opens libraries of this machine when a wheel asks for them.
#include "commands/surroundings.h"

#include <filesystem>
#include <unordered_set>

namespace wheelscope {
namespace {

using Names = std::unordered_set<std::string>;

void add_definitions(const LibraryFacts* library, Names& names) {
  if (!library) return;
  for (const auto& symbol : library->symbols) {
    if (symbol.defined) names.insert(symbol.name);
  }
}

Names symbols_of_torch(const TorchFacts& torch, Disk& disk) {
  Names names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(torch.path + "/lib", error)) {
    if (is_torch_library(entry.path().filename().string()))
      add_definitions(disk.open(entry.path()), names);
  }
  return names;
}

// An interpreter has the symbols itself, or in a library beside it.
Names symbols_of_python(const PythonFacts& python, Disk& disk, const Surroundings& surroundings) {
  Names names;
  const auto* program = disk.open(python.executable);
  add_definitions(program, names);
  for (const auto& name : program ? program->needed : std::vector<std::string>()) {
    if (!name.starts_with("libpython")) continue;
    const auto* beside = disk.open(python.base_prefix + "/lib/" + name);
    add_definitions(beside ? beside : surroundings.system_library(name), names);
  }
  return names;
}

}  // namespace

Surroundings surroundings_of(const MachineFacts& machine, Disk& disk, bool torch) {
  auto world = std::make_shared<LoaderWorld>(disk.world(machine.architecture));
  Surroundings surroundings;
  surroundings.system_library = [world](const std::string& name) -> const LibraryFacts* {
    if (const auto cached = world->cached(name); !cached.empty()) {
      if (const auto* library = world->open(cached)) return library;
    }
    for (const auto& folder : world->default_folders) {
      if (const auto* library = world->open(folder + "/" + name)) return library;
    }
    return nullptr;
  };
  auto asking = [](const std::function<Names()>& read) {
    return [read, names = std::make_shared<Names>()](const std::string& symbol) {
      if (names->empty()) *names = read();
      return names->contains(symbol);
    };
  };
  surroundings.python_has = asking([python = *machine.python, &disk, surroundings] {
    return symbols_of_python(python, disk, surroundings);
  });
  if (torch && machine.torch)
    surroundings.torch_has =
        asking([facts = *machine.torch, &disk] { return symbols_of_torch(facts, disk); });
  return surroundings;
}

}  // namespace wheelscope
