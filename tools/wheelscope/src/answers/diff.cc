// Compares the facts of two wheels, subject by subject.
#include "answers/diff.h"

#include <algorithm>

#include "packaging/requirement.h"
#include "text/text.h"

namespace wheelscope {
namespace {

using Strings = std::vector<std::string>;

Strings minus(const Strings& a, const Strings& b) {
  const std::set<std::string> known(b.begin(), b.end());
  Strings rest;
  std::ranges::copy_if(a, std::back_inserter(rest),
                       [&](const auto& word) { return !known.contains(word); });
  return rest;
}

// Returns a requirement in one spelling: a<2,>=1 ; extra == 'b' is a>=1,<2; extra=="b".
std::string normalised(const std::string& text) {
  const auto requirement = parse_requirement(text);
  auto clauses = split(requirement.specifiers, ',');
  for (auto& clause : clauses) std::erase(clause, ' ');
  std::ranges::sort(clauses);
  auto key = canonical_name(requirement.name) + "[" + joined(requirement.extras, ",") + "]" +
             joined(clauses, ",") + requirement.url + ";" + requirement.marker;
  std::erase(key, ' ');
  std::ranges::replace(key, '\'', '"');
  return key;
}

// Returns those of `a` that `b` does not have in any spelling.
Strings requirements_minus(const Strings& a, const Strings& b) {
  std::set<std::string> known;
  for (const auto& text : b) known.insert(normalised(text));
  Strings rest;
  std::ranges::copy_if(a, std::back_inserter(rest),
                       [&](const auto& text) { return !known.contains(normalised(text)); });
  return rest;
}

// Returns the name by which libraries are matched: without the hash that auditwheel puts into a
// bundled library's name.
std::string identity(const std::string& path) {
  const auto dash = path.rfind('-'), dot = path.find(".so", dash == path.npos ? 0 : dash);
  const bool hashed = dash != path.npos && dot == dash + 9;
  return hashed ? path.substr(0, dash) + path.substr(dot) : path;
}

class Differ {
 public:
  explicit Differ(std::size_t most_names) : most_names_(most_names) {}

  void text(const std::string& subject, const std::string& before, const std::string& after) {
    if (before != after) changes.push_back({subject, before, after});
  }
  void list(const std::string& subject, const Strings& before, const Strings& after) {
    text(subject, joined(minus(before, after)), joined(minus(after, before)));
  }
  void number(const std::string& subject, std::uint64_t before, std::uint64_t after) {
    text(subject, std::to_string(before), std::to_string(after));
  }
  void verdict(const std::string& subject, const std::string& kind_before,
               const std::optional<std::string>& before, const std::string& kind_after,
               const std::optional<std::string>& after) {
    text(subject, before ? kind_before + " " + *before : kind_before,
         after ? kind_after + " " + *after : kind_after);
  }
  // Compares symbols: how many, and the first ones by name.
  void symbols(const std::string& subject, const LibraryFacts& before, const LibraryFacts& after,
               bool defined) {
    const auto old_names = names(before, defined), new_names = names(after, defined);
    text(subject, shortened(minus(old_names, new_names)), shortened(minus(new_names, old_names)));
  }

  std::vector<Change> changes;

 private:
  static Strings names(const LibraryFacts& library, bool defined) {
    Strings names;
    for (const auto& symbol : library.symbols) {
      if (symbol.defined == defined)
        names.push_back(
            spelled(symbol.name, symbol.version, symbol.defined && symbol.default_version));
    }
    return names;
  }
  std::string shortened(Strings words) const {
    const auto count = words.size();
    std::ranges::sort(words);
    if (count <= most_names_) return joined(words);
    words.resize(most_names_);
    return joined(words) + " and " + std::to_string(count - most_names_) + " more";
  }

  std::size_t most_names_;
};

void diff_library(const std::string& name, const LibraryFacts& before, const LibraryFacts& after,
                  Differ& differ) {
  differ.number(name + ": size", before.size, after.size);
  differ.list(name + ": NEEDED", before.needed, after.needed);
  differ.text(name + ": RPATH", before.rpath + before.runpath, after.rpath + after.runpath);
  differ.text(name + ": RELRO", name_of(before.hardening.relro), name_of(after.hardening.relro));
  differ.symbols(name + ": defines", before, after, true);
  differ.symbols(name + ": needs", before, after, false);
}

Strings served(const CudaVerdict& cuda) {
  Strings gpus;
  for (const auto& gpu : cuda.gpus) {
    if (gpu.served != Served::no) gpus.push_back(gpu.capability + " " + name_of(gpu.served));
  }
  return gpus;
}

void diff_wheel(const WheelClaims& before, const WheelClaims& after, Differ& differ) {
  differ.text("name", before.name, after.name);
  differ.text("version", before.version, after.version);
  differ.list("tags", before.file_name_tags, after.file_name_tags);
  differ.text("requires Python", before.requires_python, after.requires_python);
  differ.text("requires", joined(requirements_minus(before.requires_dist, after.requires_dist)),
              joined(requirements_minus(after.requires_dist, before.requires_dist)));
}

void diff_verdicts(const Verdicts& before, const Verdicts& after, Differ& differ) {
  differ.text("platform", before.platform.tag, after.platform.tag);
  differ.verdict("Python ABI", name_of(before.python.abi), before.python.min,
                 name_of(after.python.abi), after.python.min);
  differ.list("Pythons", before.python.versions, after.python.versions);
  differ.verdict("torch ABI", name_of(before.torch.abi), before.torch.min, name_of(after.torch.abi),
                 after.torch.min);
  differ.verdict("NumPy ABI", name_of(before.numpy.abi), before.numpy.min, name_of(after.numpy.abi),
                 after.numpy.min);
  differ.verdict("CUDA runtime", name_of(before.cuda.runtime), before.cuda.runtime_version,
                 name_of(after.cuda.runtime), after.cuda.runtime_version);
  differ.text("oldest driver", before.cuda.min_driver.value_or(""),
              after.cuda.min_driver.value_or(""));
  differ.list("SASS", before.cuda.sass, after.cuda.sass);
  differ.list("PTX", before.cuda.ptx, after.cuda.ptx);
  differ.list("GPUs served", served(before.cuda), served(after.cuda));
}

}  // namespace

std::vector<Change> diff(const Item& old_item, const Item& new_item, std::size_t most_names) {
  Differ differ(most_names);
  const auto &before = old_item.facts, &after = new_item.facts;
  diff_wheel(before.wheel.value_or(WheelClaims{}), after.wheel.value_or(WheelClaims{}), differ);
  differ.number("size", before.size, after.size);
  auto parts = before.size_by_part;
  parts.insert(after.size_by_part.begin(), after.size_by_part.end());
  for (const auto& [part, ignored] : parts) {
    const auto old_size = before.size_by_part.find(part), new_size = after.size_by_part.find(part);
    differ.number("size of " + part, old_size == before.size_by_part.end() ? 0 : old_size->second,
                  new_size == after.size_by_part.end() ? 0 : new_size->second);
  }
  diff_verdicts(old_item.verdicts, new_item.verdicts, differ);
  std::map<std::string, std::pair<const LibraryFacts*, const LibraryFacts*>> libraries;
  for (const auto& library : before.libraries) libraries[identity(library.path)].first = &library;
  for (const auto& library : after.libraries) libraries[identity(library.path)].second = &library;
  for (const auto& [name, pair] : libraries) {
    if (pair.first && pair.second)
      diff_library(name, *pair.first, *pair.second, differ);
    else
      differ.text("library", pair.first ? name : "", pair.second ? name : "");
  }
  return std::move(differ.changes);
}

}  // namespace wheelscope
