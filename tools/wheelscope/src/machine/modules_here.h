// Which modules an environment has by itself: those of its standard library, of the interpreter,
// and of what is installed.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "facts/machine.h"

namespace wheelscope {

class ModulesHere {
 public:
  explicit ModulesHere(const PythonFacts& python);

  // False: surely not. Names of two parts are asked of packages without code of their own, such as
  // `google`.
  bool may_have(const std::string& name);

  // Whether a module may have a name in it. False: one of the standard library surely has not.
  bool may_have(const std::string& module, const std::string& name);

 private:
  bool find(const std::string& name);
  bool has_module(const std::string& folder, const std::string& name);
  bool is_in_interpreter(const std::string& name) const;

  const PythonFacts& python_;
  std::vector<std::string> standard_;  // folders of the standard library
  bool is_open_;                       // Python looks in places that are not known here
  std::map<std::string, bool> known_;
  std::map<std::string, std::set<std::string>> folders_;               // what has a name in each
  std::map<std::string, std::optional<std::set<std::string>>> names_;  // in each module
};

}  // namespace wheelscope
