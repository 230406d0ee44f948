// Goes down from package to package, each of which may belong to another distribution.
#include "answers/required_modules.h"

#include <algorithm>

#include "answers/wheel_tree.h"
#include "packaging/requirement.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// kafka-python 3.0.12, as the .dist-info folder has it.
std::string release_of(const WheelFiles& files) {
  constexpr std::string_view ending = ".dist-info";
  for (const auto& file : files.names) {
    auto folder = file.substr(0, file.find('/'));
    if (!folder.ends_with(ending)) continue;
    folder.resize(folder.size() - ending.size());
    const auto dash = folder.find('-');
    return canonical_name(folder.substr(0, dash)) +
           (dash == folder.npos ? "" : " " + folder.substr(dash + 1));
  }
  return "its package";
}

Refusal lack(const WheelFiles& files, std::string what, Need need) {
  return {{.why = Why::required_lacks, .what = std::move(what), .here = release_of(files)}, need};
}

// Code that may give names to a module which are not among its words.
bool may_make_names(std::string_view text) {
  constexpr std::string_view ways[] = {"__getattr__", "globals(", "locals(", "vars(",
                                       "setattr(",    "__dict__", "exec(",   "import *"};
  return may_make_modules(text) ||
         std::ranges::any_of(ways, [&](auto way) { return text.find(way) != text.npos; });
}

}  // namespace

std::optional<const WheelFiles*> RequiredModules::find(const std::string& module) {
  const auto [known, is_new] = found_.try_emplace(module);
  if (is_new) known->second = find_(module);
  return known->second;
}

const RequiredModules::Module& RequiredModules::look_at(const std::string& name) {
  const auto known = modules_.find(name);
  return known != modules_.end() ? known->second
                                 : modules_.emplace(name, look_up(name)).first->second;
}

RequiredModules::Module RequiredModules::look_up(const std::string& name) {
  const WheelFiles* files = nullptr;
  std::string package;  // the last one with an __init__.py
  for (std::size_t dot = 0; dot != name.npos;) {
    dot = name.find('.', dot + 1);
    const auto part = name.substr(0, dot);
    const auto* parent = files;
    if (!files || !has_module(files->names, part)) {
      const auto found = find(part);
      if (!found || (!*found && !parent)) return {};
      files = *found;
    }
    if (!files) {
      const bool may_be_made = !package.empty() && may_make_modules_in(package, *parent);
      return {.refusal = lack(*parent, part, may_be_made ? Need::depends : Need::always)};
    }
    auto path = part;
    std::ranges::replace(path, '.', '/');
    if (contains(files->names, path + "/__init__.py")) {
      package = part;
      if (dot == name.npos) return {.files = files, .path = path + "/__init__.py"};
    } else if (dot == name.npos) {
      const bool has_source = contains(files->names, path + ".py");
      return {.files = files, .path = has_source ? path + ".py" : ""};
    } else if (std::ranges::none_of(files->names, [&](const std::string& file) {
                 return file.starts_with(path + "/");
               })) {
      return {};  // a module that is no package may make others
    }
  }
  return {};
}

Refusal RequiredModules::lacking(const ImportStatement& statement) {
  const auto& module = look_at(statement.module);
  if (module.refusal.reason || statement.names.empty() || module.path.empty())
    return module.refusal;
  auto& names = modules_.at(statement.module).names;
  if (!names) {
    const auto text = module.files->read ? module.files->read(module.path) : std::nullopt;
    if (text && !may_make_names(*text)) names = names_in(*text);
    if (!names) return {};
  }
  for (const auto& name : statement.names) {
    if (name == "*" || name.starts_with("__") || names->contains(name)) continue;
    const auto part = find(statement.module + "." + name);
    if (part && !*part)
      return lack(*module.files, name + " from " + statement.module, Need::always);
  }
  return {};
}

// Whether the import of a package runs code that may make modules in it. Texts of machine code do
// not tell.
bool RequiredModules::may_make_modules_in(const std::string& package, const WheelFiles& files) {
  const auto top = package.substr(0, package.find('.'));
  if (std::ranges::any_of(files.names, [&](const std::string& file) {
        return file.starts_with(top + "/") && file.ends_with(".so");
      }))
    return true;
  WheelTree tree(files);
  const auto inside = WheelTree::python_in(python_);
  Imports imports(inside, tree.tree());
  return std::ranges::any_of(imports.files_run_by({top, package}, PythonReading::imports),
                             [&](const auto& file) {
                               const auto text = tree.read(file.first);
                               return !text || may_make_modules(*text);
                             });
}

}  // namespace wheelscope
