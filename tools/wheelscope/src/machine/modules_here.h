// Which modules an environment has by itself: those of its standard library, of the interpreter,
// and of what is installed.
#pragma once

#include <map>
#include <string>

#include "facts/machine.h"

namespace wheelscope {

class ModulesHere {
 public:
  explicit ModulesHere(const PythonFacts& python) : python_(python) {}

  // False: surely not. Names of two parts are asked of packages without code of their own, such as
  // `google`.
  bool may_have(const std::string& name);

  // Whether a module may have a name in it. False: one of the standard library surely has not.
  bool may_have(const std::string& module, const std::string& name);

 private:
  bool find(const std::string& name);
  bool is_in_interpreter(const std::string& name) const;

  const PythonFacts& python_;
  std::map<std::string, bool> known_;
};

}  // namespace wheelscope
