// Searches, loads and binds as ld.so does.
#include "loader/loader.h"

#include <algorithm>
#include <bit>

#include "text/text.h"

namespace wheelscope {
namespace {

bool has_name(const Loaded& library, const std::string& name) {
  return library.facts->soname == name || contains(library.names, name);
}

std::string join_path(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder.ends_with('/') ? folder + name : folder + "/" + name;
}

std::size_t hash_of(const SymbolFact& symbol) {
  return std::hash<std::string>()(symbol.name);
}

// Returns the half of a hash that does not choose the position in an index.
std::uint32_t tag_of(std::size_t hash) {
  return static_cast<std::uint32_t>(hash >> 32);
}

}  // namespace

bool same_machine(const LibraryFacts& process, const LibraryFacts& library) {
  return process.machine == library.machine && process.bits == library.bits &&
         process.big_endian == library.big_endian;
}

bool version_fits(const SymbolFact& wanted, const SymbolFact& definition,
                  const LibraryFacts& definer) {
  const bool definer_has_versions = !definer.version_definitions.empty();
  if (!definer_has_versions) return true;
  if (wanted.version.empty()) {
    // A reference without a version comes from a file that is old or was linked without versions:
    // it gets the first or the default version.
    return definition.version.empty() || definition.first_version || definition.default_version;
  }
  if (definition.version == wanted.version) return true;
  return definition.version.empty() && definition.default_version;
}

std::string Loader::expand(const std::string& entry, const Loaded& library) const {
  auto folder = entry;
  const auto origin = folder_of(library.path).empty() ? std::string(".") : folder_of(library.path);
  for (const auto& [name, value] : {std::pair<std::string, const std::string&>("ORIGIN", origin),
                                    {"LIB", world_.lib},
                                    {"PLATFORM", world_.platform}}) {
    for (const auto& form : {"$" + name, "${" + name + "}"})
      folder = replace_all(std::move(folder), form, value);
  }
  return folder;
}

const Loaded* Loader::already_loaded(const std::string& name) const {
  for (const auto& library : loaded_) {
    if (has_name(*library, name)) return library.get();
  }
  return nullptr;
}

std::string Loader::search(const std::string& name, const Loaded* by,
                           std::vector<SearchStep>* steps) const {
  const auto path = find_path(name, by, steps);
  return path.empty() || !world_.open(path) ? std::string() : path;
}

// Returns the file that ends the search, successfully or not.
std::string Loader::find_path(const std::string& name, const Loaded* by,
                              std::vector<SearchStep>* steps) const {
  auto takes = [&](const std::string& path, const std::string& place) {
    const auto* facts = world_.open(path);
    const auto result =
        !facts ? world_.is_damaged(path) ? SearchStep::Result::damaged : SearchStep::Result::absent
        : like_ && !same_machine(*like_, *facts) ? SearchStep::Result::other_machine
                                                 : SearchStep::Result::found;
    if (steps) steps->push_back({place, path, result});
    return result == SearchStep::Result::found || result == SearchStep::Result::damaged;
  };
  if (name.find('/') != name.npos) {
    const auto path = by ? expand(name, *by) : name;
    return takes(path, "as a path") ? path : std::string();
  }
  auto in_list = [&](const std::string& list, const Loaded& owner,
                     const char* kind) -> std::string {
    if (list.empty()) return {};
    for (const auto& entry : split(list, ':')) {
      // An empty entry is the current folder.
      const auto path = join_path(entry.empty() ? "." : expand(entry, owner), name);
      if (takes(path, std::string(kind) + " of " + owner.path)) return path;
    }
    return {};
  };
  std::string path;
  if (!by || by->facts->runpath.empty()) {
    const Loaded* last = nullptr;
    for (const auto* owner = by; owner && path.empty(); owner = owner->loader) {
      last = owner;
      if (owner->facts->runpath.empty()) path = in_list(owner->facts->rpath, *owner, "RPATH");
    }
    // The program's RPATH also counts for libraries opened by dlopen.
    const auto* program = global_.empty() ? nullptr : global_.front();
    if (path.empty() && program && program != last && program->facts->runpath.empty())
      path = in_list(program->facts->rpath, *program, "RPATH");
    if (!path.empty()) return path;
  }
  for (const auto& folder : world_.library_path) {
    path = join_path(folder.empty() ? "." : folder, name);
    if (takes(path, "LD_LIBRARY_PATH")) return path;
  }
  if (by) {
    if (path = in_list(by->facts->runpath, *by, "RUNPATH"); !path.empty()) return path;
  }
  if (by && by->facts->no_default_folders) return {};
  if (path = world_.cached(name); !path.empty() && takes(path, "ld.so.cache")) return path;
  for (const auto& folder : world_.default_folders) {
    path = join_path(folder, name);
    if (takes(path, "default folder")) return path;
  }
  return {};
}

Loaded* Loader::load(const std::string& path, const std::string& name, const Loaded* by) {
  const auto* facts = world_.open(path);
  // The same file under another name is not loaded again.
  for (auto& library : loaded_) {
    if (library->facts == facts) {
      library->names.push_back(name);
      return library.get();
    }
  }
  if (!like_) like_ = facts;
  loaded_.push_back(std::make_unique<Loaded>(
      Loaded{.path = path, .facts = facts, .loader = by, .names = {name}}));
  return loaded_.back().get();
}

void Loader::load_needed(Loaded& library, Opening& opening, std::vector<Loaded*>& queue) {
  for (const auto& name : library.facts->needed) {
    Loaded* found = nullptr;
    if (const auto* there = already_loaded(name)) {
      found = const_cast<Loaded*>(there);
    } else if (const auto path = search(name, &library); !path.empty()) {
      found = load(path, name, &library);
    } else {
      opening.missing_libraries.push_back({name, &library});
      library.absent.push_back(name);
      continue;
    }
    library.needed.push_back(found);
    if (!contains(queue, found)) queue.push_back(found);
  }
}

// Checks that the versions which a library needs are defined by the file it needs them from, unless
// that file has no versions at all.
void Loader::check_versions(const Loaded& library, Opening& opening) const {
  for (const auto& [name, versions] : library.facts->version_needs) {
    const auto* provider = already_loaded(name);
    if (!provider || provider->facts->version_definitions.empty()) continue;
    for (const auto& version : versions) {
      if (!provider->facts->version_definitions.contains(version))
        opening.missing_versions.push_back({name, version, &library});
    }
  }
}

Opening Loader::bring(const std::string& path, bool is_name, bool global) {
  Opening opening;
  const auto* program = global_.empty() ? nullptr : global_.front();
  Loaded* root = nullptr;
  if (const auto* there = already_loaded(path))
    root = const_cast<Loaded*>(there);
  else if (const auto found = is_name ? search(path, program) : path;
           !found.empty() && world_.open(found))
    root = load(found, path, nullptr);
  if (!root) {
    opening.missing_libraries.push_back({path, nullptr});
    return opening;
  }
  opening.root = root;
  std::vector<Loaded*> queue{root};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    auto& library = *queue[i];
    if (library.needed.empty() && library.absent.empty()) {
      load_needed(library, opening, queue);
    } else {
      for (const auto& name : library.absent) opening.missing_libraries.push_back({name, &library});
      for (const auto* needed : library.needed) {
        if (!contains(queue, needed)) queue.push_back(const_cast<Loaded*>(needed));
      }
    }
  }
  opening.scope.assign(queue.begin(), queue.end());
  for (const auto* library : opening.scope) check_versions(*library, opening);
  if (global) {
    for (const auto* library : opening.scope) {
      if (!contains(global_, library)) global_.push_back(library);
    }
  }
  return opening;
}

Opening Loader::start(const std::string& path) {
  return bring(path, false, true);
}

Opening Loader::open(const std::string& path, bool global) {
  return bring(path, path.find('/') == path.npos, global);
}

void Loader::unload_after(std::size_t count) {
  std::erase_if(global_, [&](const Loaded* library) {
    return std::ranges::find(loaded_, library, [](const auto& one) { return one.get(); }) -
               loaded_.begin() >=
           static_cast<std::ptrdiff_t>(count);
  });
  loaded_.resize(std::min(count, loaded_.size()));
}

const Loader::Index& Loader::index_of(const LibraryFacts& facts) const {
  auto [found, is_new] = indexes_.try_emplace(&facts);
  if (is_new) {
    auto& index = found->second;
    index.resize(std::bit_ceil(2 * facts.symbols.size() + 1));
    for (std::size_t i = 0; i < facts.symbols.size(); ++i) {
      if (!facts.symbols[i].defined) continue;
      const auto hash = hash_of(facts.symbols[i]);
      auto at = hash & (index.size() - 1);
      while (index[at].number != 0) at = (at + 1) & (index.size() - 1);
      index[at] = {tag_of(hash), static_cast<std::uint32_t>(i + 1)};
    }
  }
  return found->second;
}

const SymbolFact* Loader::definition_in(const Loaded& library, const SymbolFact& wanted,
                                        std::size_t hash) const {
  const auto& index = index_of(*library.facts);
  const SymbolFact* fallback = nullptr;
  std::size_t fallbacks = 0;
  const auto last = index.size() - 1;
  for (auto at = hash & last; index[at].number != 0; at = (at + 1) & last) {
    if (index[at].hash != tag_of(hash)) continue;
    const auto* definition = &library.facts->symbols[index[at].number - 1];
    if (definition->name != wanted.name || !version_fits(wanted, *definition, *library.facts))
      continue;
    const bool at_once = !wanted.version.empty() || library.facts->version_definitions.empty() ||
                         definition->version.empty() || definition->first_version;
    if (at_once) return definition;
    ++fallbacks;
    fallback = definition;
  }
  return fallbacks == 1 ? fallback : nullptr;  // several default versions: ambiguous
}

Binding Loader::bind(const SymbolFact& wanted, const Opening& opening) const {
  const auto hash = hash_of(wanted);
  for (const auto* scope : {&global_, &opening.scope}) {
    for (const auto* library : *scope) {
      if (const auto* definition = definition_in(*library, wanted, hash))
        return {library, definition};
    }
  }
  return {};
}

}  // namespace wheelscope
