// Reads the files and machines that the command line names, and opens libraries of this machine
// when a wheel asks for them.
#include "commands/inputs.h"

#include <unordered_set>

#include "answers/owners.h"
#include "facts/wheel.h"
#include "machine/machine.h"
#include "report/text.h"
#include "source/source.h"
#include "source/system.h"

namespace wheelscope {
namespace {

Result<Facts> read_facts(const std::string& path, const ScanOptions& options) {
  const auto file = TRY(Source::map(path));
  if (auto facts = read_lone_file(path, file.bytes(), options)) return std::move(*facts);
  auto facts = read_wheel({path, file.bytes()}, options);
  if (!facts)
    return fail(facts.error().offset, path + ": " + facts.error().what + " (at offset " +
                                          std::to_string(facts.error().offset) + ")");
  return facts;
}

using Names = std::unordered_set<std::string>;

void add_definitions(const LibraryFacts* library, Names& names) {
  if (!library) return;
  for (const auto& symbol : library->symbols) {
    if (symbol.defined) names.insert(symbol.name);
  }
}

Names symbols_of_torch(const TorchFacts& torch, Disk& disk) {
  Names names;
  const auto folder = torch.path + "/lib";
  for (const auto& name : entries_of(folder))
    if (is_torch_library(name)) add_definitions(disk.open(folder + "/" + name), names);
  return names;
}

// Returns the symbols of an interpreter, which has them itself or in a library beside it.
Names symbols_of_python(const PythonFacts& python, Disk& disk, const Lookups& lookups) {
  Names names;
  const auto* program = disk.open(python.executable);
  add_definitions(program, names);
  for (const auto& name : program ? program->needed : std::vector<std::string>()) {
    if (!name.starts_with("libpython")) continue;
    const auto* beside = disk.open(python.base_prefix + "/lib/" + name);
    add_definitions(beside ? beside : lookups.system_library(name), names);
  }
  return names;
}

}  // namespace

int complain(const Error& error, Streams streams) {
  streams.err << "wheelscope: " << printable(error.what) << "\n";
  return unreadable;
}

int bad_usage(const std::string& what, Streams streams) {
  complain({0, what}, streams);
  return usage;
}

Result<Item> read_item(const std::string& path, const ScanOptions& options, Texts texts) {
  auto facts = TRY(read_facts(path, options));
  if (texts == Texts::printable) make_printable(facts);
  return examine(std::move(facts));
}

Items read_items(const std::vector<std::string>& paths, const ScanOptions& scan,
                 const Options& options, Streams streams) {
  Items read;
  for (const auto& path : paths) {
    const auto files = expand_path(path);
    if (!files) {
      read.code = complain(files.error(), streams);
      continue;
    }
    if (files->empty())
      read.code = complain({0, path + ": no wheel and no ELF file in this folder"}, streams);
    for (const auto& file : *files) {
      if (auto item = read_item(file, scan, options.json ? Texts::as_they_are : Texts::printable))
        read.items.push_back(std::move(*item));
      else
        read.code = complain(item.error(), streams);
    }
  }
  return read;
}

bool asks_two_machines(const Options& options, Streams streams) {
  if (options.machine.empty() || options.python.empty()) return false;
  bad_usage("--python asks this machine, --machine another: give one of them", streams);
  return true;
}

Result<MachineFacts> asked_machine(const Options& options) {
  if (options.machine.empty()) return read_machine(options.python);
  const auto text = TRY(read_text(options.machine));
  auto machine = parse_machine(text);
  if (!machine) return fail(0, options.machine + ": " + machine.error().what);
  return machine;
}

Lookups lookups_on(const MachineFacts& machine, Disk& disk, bool torch) {
  auto world = std::make_shared<LoaderWorld>(disk.world(machine.architecture));
  Lookups lookups;
  lookups.system_library = [world](const std::string& name) -> const LibraryFacts* {
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
  lookups.python_has = asking([python = *machine.python, &disk, lookups] {
    return symbols_of_python(python, disk, lookups);
  });
  if (torch && machine.torch)
    lookups.torch_has =
        asking([facts = *machine.torch, &disk] { return symbols_of_torch(facts, disk); });
  return lookups;
}

}  // namespace wheelscope
