// Tells whether the distributions that come with a wheel have what it imports from them: a version
// that a requirement allows may have lost a module or a name.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "answers/wheel_imports.h"

namespace wheelscope {

class RequiredModules {
 public:
  // Finds the first of these distributions that has files of a module. Null: none has, and nothing
  // else here; nothing: unknown.
  using Find = std::function<std::optional<const WheelFiles*>(const std::string& module)>;

  RequiredModules(const PythonFacts& python, Find find) : python_(python), find_(std::move(find)) {}

  // Returns what a statement imports and its distribution does not have, which `here` names. The
  // need is `depends` if code of that distribution may make it.
  Refusal lacking(const ImportStatement& statement);

 private:
  struct Module {
    const WheelFiles* files = nullptr;  // null: unknown
    std::string path;                   // of its source, if it has one
    Refusal refusal;                    // why it cannot be imported
    std::optional<std::set<std::string>> names;
  };

  std::optional<const WheelFiles*> find(const std::string& module);
  const Module& look_at(const std::string& name);
  Module look_up(const std::string& name);
  bool may_make_modules_in(const std::string& package, const WheelFiles& files);

  const PythonFacts& python_;
  Find find_;
  std::map<std::string, std::optional<const WheelFiles*>> found_;
  std::map<std::string, Module> modules_;
};

}  // namespace wheelscope
