// Puts reasons into words: what is in the way, and what would have to change.
#include "answers/lookups.h"
#include "answers/owners.h"
#include "answers/served.h"
#include "report/text.h"
#include "text/text.h"

namespace wheelscope {
namespace {

std::string cuda_here(const std::string& cuda) {
  return cuda == "cpu" ? "no CUDA" : "CUDA " + cuda;
}

// Who has a library that nothing brings.
std::string source_of(const std::string& library) {
  if (is_driver_library(library)) return "a machine with NVIDIA's driver";
  if (is_torch_library(library)) return "a torch that is built with CUDA";
  const auto distributions = cuda_distributions_of(library);
  return distributions.empty() ? "a system with " + library
                               : "pip install " + distributions.front();
}

}  // namespace

std::string reason_text(const Reason& reason) {
  const auto& [why, who, what, version, here] = reason;
  const auto needs = base_name(who) + " needs " + what;
  switch (why) {
    case Why::none:
      return {};
    case Why::not_a_wheel:
      return "it is not a wheel";
    case Why::damaged:
      return (who.empty() ? "" : who + ": ") + what;
    case Why::not_read:
      return "it could not be read: " + what;
    case Why::no_tags:
      return "its name has no tags";
    case Why::other_machine:
      return "it is not for " + here;
    case Why::musl:
      return "it is for musl, not for glibc";
    case Why::other_system:
      return "it is for another system: " + what;
    case Why::newer_system:
      return "its tag is for a newer or another system: " + what + "; here is " + here;
    case Why::newer_glibc:
      return "it needs glibc " + version + ", whatever its tag says" +
             (what.empty() ? "" : ": " + what);
    case Why::symbol_version:
      return base_name(who) + " needs " + version + " of " + what +
             ", which this system's does not have";
    case Why::symbol_version_unsure:
      return base_name(who) + " needs " + version + " of " + what + ", which a system with glibc " +
             here + " need not have";
    case Why::python_tag:
      return "its tag is not for Python " + here;
    case Why::python_required:
      return "it requires Python " + what;
    case Why::python_gil:
      return "its modules are built for the limited API of builds with the GIL";
    case Why::python_symbol:
      return who.empty() ? "it needs Python " + version : who + " exists since Python " + version;
    case Why::python_slots:
      return "a module is exported by PyModExport_, which Python reads since " + version;
    case Why::python_unnamed:
      return "its modules are bound to one Python, which they do not name";
    case Why::python_built:
      return "its modules are built for Python " + version;
    case Why::python_no_init:
      return who + " has no PyInit function, and the package imports it";
    case Why::python_of_one_module:
      return base_name(who) + " is for another Python; other modules are for any";
    case Why::python_private_unsure:
      return needs + ", which the limited API does not promise later Pythons";
    case Why::python_private:
      return needs + ", which this Python does not have";
    case Why::torch_required:
      return "it requires " + what + (here.empty() ? "" : "; torch " + here + " is here");
    case Why::torch_absent:
      return "it needs torch, which is not here and which it does not require";
    case Why::torch_unsaid:
      return std::string("it is bound to torch's C++ ABI and does not say of which torch") +
             (here.empty() ? "; none is here" : "");
    case Why::torch_built:
      return "it is bound to the C++ ABI of torch " + version;
    case Why::torch_symbol_unknown:
      return "no known torch has " + what;
    case Why::torch_older:
      return "it needs torch " + version + " for " + what;
    case Why::torch_symbol:
      return base_name(who) + " needs " + demangle(what) + ", which torch " + here +
             " here does not have";
    case Why::torch_asked:
      return who + " compares torch's CUDA with its own when it is imported, and may refuse it";
    case Why::torch_layout:
      return base_name(who) + " loads, but " + std::string(layout_doubt);
    case Why::numpy_one:
      return base_name(who) + " is built for NumPy 1; it will meet NumPy " + here;
    case Why::numpy_two:
      return base_name(who) + " is built for NumPy 2; it will meet NumPy " + here;
    case Why::numpy_older:
      return base_name(who) + " needs NumPy " + version + "; it will meet NumPy " + here;
    case Why::numpy_absent:
      return base_name(who) + " needs NumPy, which is not here and which it does not require";
    case Why::refuses:
      return who +
             " raises an error when it is imported, unless another module was imported before";
    case Why::module_absent:
      return who + " imports " + what + ", which is not here and which nothing requires";
    case Why::imports_hidden:
      return who + " hides which modules it imports; whether they are all required is not known";
    case Why::module_named:
      return who + " names " + what +
             ", which is not here and which nothing requires; whether it imports that is not known";
    case Why::module_compared:
      return who + " refuses some versions of " + what + "; which ones is not known";
    case Why::imports_in_circle:
      return who + " imports " + what + " from " + here +
             ", which imports that file; whether it has the name by then is not known";
    case Why::requirement_unmet:
      return "it requires " + what + ", which the index does not have for this machine";
    case Why::versions_conflict:
      return who + " requires " + what + ", and " + here +
             " would come: the installer takes another version of one of them, which was not "
             "looked at";
    case Why::name_absent:
      return who + " imports " + what + " from " + here + ", which has no such name in this Python";
    case Why::library_opened:
      return who + " opens " + what +
             ", which nothing here brings, or another library in its place";
    case Why::library_absent:
      return needs + ", which nothing here brings";
    case Why::library_of_system:
      return needs + ", which the system would have to have";
    case Why::library_of_cuda:
      return needs + "; torch brings " + cuda_here(here);
    case Why::library_of_later_torch:
      return needs + ", which the torch to be installed may bring";
    case Why::library_unopened:
      return needs +
             ", which nothing here brings; whether its import opens that library is not "
             "known";
    case Why::no_device_code:
      return "it has no device code";
    case Why::cpu_torch:
      return who + " needs " + what + ", which a CPU build of torch lacks";
    case Why::runtime_unknown:
      return "the version of its CUDA runtime cannot be told";
    case Why::runtime_other:
      return "it needs libcudart.so." + version + "; torch brings CUDA " + here;
    case Why::runtime_driver:
      return "its CUDA " + version + " runtime needs a newer driver than CUDA " + here;
    case Why::driver_older:
      return (who.empty() ? "" : "for " + who + " ") + "it needs driver " + version + "; " + here +
             " is here";
    case Why::driver_unknown:
      return base_name(who) +
             " has a CUDA runtime inside; which driver that needs is not known without --deep; " +
             here + " is here";
    case Why::gpu_unserved:
      return base_name(who) + " has no code for " + what + " (" + version +
             "): a call of its kernels fails";
    case Why::only_sources:
      return "it has no wheel for this machine, only sources that would be compiled here";
  }
  return {};
}

std::string change_text(const Reason& reason) {
  const auto& [why, who, what, version, here] = reason;
  switch (why) {
    case Why::newer_system:
      return "another system";
    case Why::newer_glibc:
      return "a system with glibc " + version + " or newer";
    case Why::symbol_version:
      return "a newer " + what;
    case Why::symbol_version_unsure:
      return "a newer " + what + ", or ask on the machine itself";
    case Why::python_no_init:
      return "another version of the package";
    case Why::python_of_one_module:
      return "another Python, if that module is needed";
    case Why::python_private_unsure:
      return "ask on the machine itself";
    case Why::python_tag:
    case Why::python_required:
    case Why::python_gil:
    case Why::python_symbol:
    case Why::python_slots:
    case Why::python_unnamed:
    case Why::python_built:
    case Why::python_private:
    case Why::name_absent:
      return "another Python";
    case Why::torch_absent:
      return "pip install torch";
    case Why::torch_unsaid:
      return here.empty() ? "say which torch it will meet: --with torch==VERSION"
                          : reason_text(reason);
    case Why::library_of_later_torch:
      return "say which torch it will meet: --with torch==VERSION";
    case Why::torch_required:
    case Why::torch_symbol:
      return version.empty() ? "another torch" : "torch " + version;
    case Why::torch_built:
    case Why::torch_symbol_unknown:
    case Why::torch_older:
      return "another torch";
    case Why::torch_asked:
      return "a torch and this from one place, for the same CUDA; `env --import` tells for sure";
    case Why::torch_layout:
      return std::string(layout_cure);
    case Why::numpy_one:
      return "pip install 'numpy<2', or a newer version of this";
    case Why::numpy_two:
      return "pip install 'numpy>=2'";
    case Why::numpy_older:
      return "pip install 'numpy>=" + version + "'";
    case Why::numpy_absent:
      return "pip install numpy";
    case Why::refuses:
      return "import the package that it belongs to";
    case Why::imports_hidden:
    case Why::module_compared:
    case Why::imports_in_circle:
      return "try it: `env --import` tells for sure once it is installed";
    case Why::requirement_unmet:
      return "another version of it, or an index that has " + what;
    case Why::versions_conflict:
      return "versions that go together: `wheelscope fit --format set` chooses them";
    case Why::module_absent:
    case Why::module_named:
      return "pip install the package that has " + what;
    case Why::library_opened:
    case Why::library_absent:
    case Why::library_of_system:
    case Why::library_of_cuda:
    case Why::library_unopened:
      return source_of(what);
    case Why::cpu_torch:
    case Why::runtime_other:
    case Why::runtime_driver:
      return "a torch for another CUDA";
    case Why::driver_older:
      return "driver " + version + " or newer";
    case Why::driver_unknown:
      return "ask again with --deep; any runtime works with driver " + version;
    case Why::gpu_unserved:
      return "another GPU, or a build for " + version;
    default:
      return reason_text(reason);
  }
}

}  // namespace wheelscope
