// A process of the environment's Python, as far as the loader goes: started, and with torch
// imported where that is asked for.
#pragma once

#include "facts/machine.h"
#include "loader/disk.h"

namespace wheelscope {

class PythonProcess {
 public:
  // `torch`: what `import torch` loads is loaded.
  PythonProcess(const MachineFacts& machine, Disk& disk, bool torch);

  // Opens a library as Python opens a module (RTLD_NOW, RTLD_LOCAL), after those in `before`; what
  // an earlier call loaded is gone.
  Opening open(const std::string& path, const std::vector<std::string>& before = {});

  const Loader& loader() const { return loader_; }

 private:
  void import_torch(const MachineFacts& machine);

  Loader loader_;
  std::size_t started_ = 0;  // how many libraries are there from the start
};

}  // namespace wheelscope
