// Who brings a library that a wheel needs and does not have: the system, the driver, torch, or a
// distribution that the wheel requires.
#pragma once

#include <functional>

#include "answers/wheel_imports.h"
#include "facts/facts.h"
#include "facts/machine.h"

namespace wheelscope {

enum class Brought { yes, no, unknown };

// What the machine's own files say, where they can be asked: not those of a saved machine, nor of a
// torch that is still to be installed; and what the wheels bring that a wheel requires. An empty
// function means unknown.
struct Lookups {
  std::function<const LibraryFacts*(const std::string& name)> system_library;
  std::function<bool(const std::string&)> torch_has;
  std::function<bool(const std::string&)> python_has;
  std::function<Brought(const std::string& library)> required_wheels;
  // The NumPy that will be there; empty: none will. `unknown` where it cannot be told.
  std::function<std::optional<std::string>()> numpy;
  std::function<const WheelImports*()> imports;  // of the wheel itself; null: not known
  std::function<Refusal()> refusal;              // of the wheel's own Python code
  bool same_cuda_as_index = true;                // torch here is the build that the index has
};

class LibrarySources {
 public:
  // All of these must outlive it.
  LibrarySources(const MachineFacts& machine, const WheelClaims& wheel, const Lookups& lookups)
      : machine_(machine), wheel_(wheel), lookups_(lookups) {}

  Brought brings(const std::string& name) const;

 private:
  bool requires_any(const std::vector<std::string>& distributions) const;
  bool torch_brings(const std::string& name) const;

  const MachineFacts& machine_;
  const WheelClaims& wheel_;
  const Lookups& lookups_;
};

bool is_torch_library(std::string_view name);

// A name that wheels need from elsewhere: of the platform, the driver, CUDA, torch or Python.
bool is_known_library(const std::string& name);

}  // namespace wheelscope
