// Why a wheel does not serve a user, as data: a kind, and the names and versions that belong to it.
// report/reason_text.cc turns it into sentences and decides nothing.
#pragma once

#include <string>

namespace wheelscope {

// Each kind lists the fields of the reason that it uses. Usually `who` needs `what` of `version`,
// and `here` is what the machine has.
enum class Why {
  none,
  not_a_wheel,
  damaged,   // who: a member, what: its problem
  not_read,  // what: the error
  no_tags,
  other_machine,  // here
  musl,
  other_system,           // what: a platform
  newer_system,           // what: a platform, here: the C library
  newer_glibc,            // version, what: a symbol's version that needs it
  symbol_version,         // who, version, what: the library that should have it
  symbol_version_unsure,  // the same; here: the C library
  python_tag,             // here
  python_required,        // what
  python_gil,
  python_symbol,  // who: a symbol, version
  python_slots,   // version
  python_unnamed,
  python_built,           // version: all of them
  python_no_init,         // who: a file that is imported and is no module
  python_of_one_module,   // who
  python_private_unsure,  // who, what: a symbol
  python_private,         // who, what: a symbol
  torch_required,         // what: the requirement, version: an exact one, here
  torch_absent,
  torch_unsaid,            // here: empty where there is none
  torch_built,             // version
  torch_symbol_unknown,    // what
  torch_older,             // version, what: a symbol
  torch_symbol,            // who, what, here; version: the torch that it requires
  torch_asked,             // who: a file of Python code
  torch_layout,            // who
  numpy_one,               // who, here; what: the package that requires this NumPy
  numpy_two,               // who, here, what
  numpy_older,             // who, version, here, what
  numpy_absent,            // who
  refuses,                 // who: a file of Python code
  module_absent,           // who: a file of Python code, what
  required_lacks,          // who: a file of Python code, what, here: a package with its version
  imports_hidden,          // who: a file of machine code
  module_named,            // who: a file of machine code, what
  module_compared,         // who: a file of machine code, what
  imports_in_circle,       // who: a file of Python code, what: a name of the module `here`
  requirement_unmet,       // what
  versions_conflict,       // who, what, here
  name_absent,             // who: a file of Python code, what: a name of the module `here`
  cffi_name_absent,        // who: a file of Python code, what
  library_opened,          // who: a package, what: a library that its Python code opens
  library_absent,          // who, what
  library_of_system,       // who, what
  library_of_cuda,         // who, what, here: torch's CUDA
  library_of_later_torch,  // who, what
  library_unopened,        // who, what: a library that Python code may open
  no_device_code,
  cpu_torch,  // who, what: a library or a symbol
  runtime_unknown,
  runtime_other,   // version, here
  runtime_driver,  // version, here
  driver_older,    // version, here; who: a GPU
  driver_unknown,  // who, version: the newest, here
  gpu_unserved,    // who, what: a GPU, version: its capability
  only_sources,
};

struct Reason {
  Why why = Why::none;
  std::string who, what, version, here;

  explicit operator bool() const { return why != Why::none; }
  bool operator==(const Reason&) const = default;
};

}  // namespace wheelscope
