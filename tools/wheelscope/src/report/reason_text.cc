// Puts reasons into words: what is in the way, and what would have to change.
#include <algorithm>

#include "answers/cover.h"
#include "answers/owners.h"
#include "report/text.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// {who} and the like stand for fields of the reason, others for what part_of() makes of them. A
// text in brackets is left out if a part in it is empty. Without words for a change, the sentence
// is used instead.
struct Words {
  Why why;
  std::string_view sentence, change = {};
};

constexpr Words words[] = {
    {Why::none, ""},
    {Why::not_a_wheel, "it is not a wheel"},
    {Why::damaged, "[{who}: ]{what}"},
    {Why::not_read, "it could not be read: {what}"},
    {Why::no_tags, "its name has no tags"},
    {Why::other_machine, "it is not for {here}"},
    {Why::musl, "it is for musl, not for glibc"},
    {Why::other_system, "it is for another system: {what}"},
    {Why::newer_system, "its tag is for a newer or another system: {what}; here is {here}",
     "another system"},
    {Why::newer_glibc, "it needs glibc {version}, whatever its tag says[: {what}]",
     "a system with glibc {version} or newer"},
    {Why::symbol_version, "{file} needs {version} of {what}, which this system's does not have",
     "a newer {what}"},
    {Why::symbol_version_unsure,
     "{file} needs {version} of {what}, which a system with glibc {here} need not have",
     "a newer {what}, or ask on the machine itself"},
    {Why::python_tag, "its tag is not for Python {here}", "another Python"},
    {Why::python_required, "it requires Python {what}", "another Python"},
    {Why::python_gil, "its modules are built for the limited API of builds with the GIL",
     "another Python"},
    {Why::python_symbol, "{python}", "another Python"},
    {Why::python_slots, "a module is exported by PyModExport_, which Python reads since {version}",
     "another Python"},
    {Why::python_unnamed, "its modules are bound to one Python, which they do not name",
     "another Python"},
    {Why::python_built, "its modules are built for Python {version}", "another Python"},
    {Why::python_no_init, "{who} has no PyInit function, and the package imports it",
     "another version of the package"},
    {Why::python_of_one_module, "{file} is for another Python; other modules are for any",
     "another Python, if that module is needed"},
    {Why::python_private_unsure,
     "{file} needs {what}, which the limited API does not promise later Pythons",
     "ask on the machine itself"},
    {Why::python_private, "{file} needs {what}, which this Python does not have", "another Python"},
    {Why::torch_required, "it requires {what}[; torch {here} is here]", "{torch}"},
    {Why::torch_absent, "it needs torch, which is not here and which it does not require",
     "pip install torch"},
    {Why::torch_unsaid, "it is bound to torch's C++ ABI and does not say of which torch{absent}",
     "say which torch it will meet: --with torch==VERSION"},
    {Why::torch_built, "it is bound to the C++ ABI of torch {version}", "another torch"},
    {Why::torch_symbol_unknown, "no known torch has {what}", "another torch"},
    {Why::torch_older, "it needs torch {version} for {what}", "another torch"},
    {Why::torch_symbol, "{file} needs {symbol}, which torch {here} here does not have", "{torch}"},
    {Why::torch_asked,
     "{who} compares torch's CUDA with its own when it is imported, and may refuse it",
     "a torch and this from one place, for the same CUDA; `env --import` tells for sure"},
    {Why::torch_layout, "{file} loads, but {layout doubt}", layout_cure},
    {Why::numpy_one,
     "{file} is built for NumPy 1; it will meet NumPy {here}[, which {what} requires]",
     "pip install 'numpy<2', or a newer version of this"},
    {Why::numpy_two,
     "{file} is built for NumPy 2; it will meet NumPy {here}[, which {what} requires]",
     "pip install 'numpy>=2'"},
    {Why::numpy_older,
     "{file} needs NumPy {version}; it will meet NumPy {here}[, which {what} requires]",
     "pip install 'numpy>={version}'"},
    {Why::numpy_absent, "{file} needs NumPy, which is not here and which it does not require",
     "pip install numpy"},
    {Why::refuses,
     "{who} raises an error when it is imported, unless another module was imported before",
     "import the package that it belongs to"},
    {Why::module_absent, "{who} imports {what}, which is not here and which nothing requires",
     "pip install the package that has {what}"},
    {Why::required_lacks, "{who} imports {what}, which the files of {here} do not have",
     "another version of that package"},
    {Why::imports_hidden,
     "{who} hides which modules it imports; whether they are all required is not known",
     "try it: `env --import` tells for sure once it is installed"},
    {Why::module_named,
     "{who} names {what}, which is not here and which nothing requires; whether it imports that is "
     "not known",
     "pip install the package that has {what}"},
    {Why::module_compared, "{who} refuses some versions of {what}; which ones is not known",
     "try it: `env --import` tells for sure once it is installed"},
    {Why::imports_in_circle,
     "{who} imports {what} from {here}, which imports that file; whether it has the name by then "
     "is not known",
     "try it: `env --import` tells for sure once it is installed"},
    {Why::requirement_unmet, "it requires {what}, which the index does not have for this machine",
     "another version of it, or an index that has {what}"},
    {Why::versions_conflict,
     "{who} requires {what}, and {here} would come: the installer takes another version of one of "
     "them, which was not looked at",
     "versions that go together: `wheelscope fit --format set` chooses them"},
    {Why::name_absent, "{who} imports {what} from {here}, which has no such name in this Python",
     "another Python"},
    {Why::cffi_name_absent,
     "{who} takes {what} from machine code that cffi made, and none here has it",
     "other versions of the packages, which were made for each other"},
    {Why::library_opened,
     "{who} opens {what}, which nothing here brings, or another library in its place", "{source}"},
    {Why::library_absent, "{file} needs {what}, which nothing here brings", "{source}"},
    {Why::library_of_system, "{file} needs {what}, which the system would have to have",
     "{source}"},
    {Why::library_of_cuda, "{file} needs {what}; torch brings {cuda}", "{source}"},
    {Why::library_of_later_torch, "{file} needs {what}, which the torch to be installed may bring",
     "say which torch it will meet: --with torch==VERSION"},
    {Why::library_unopened,
     "{file} needs {what}, which nothing here brings; whether its import opens that library is not "
     "known",
     "{source}"},
    {Why::no_device_code, "it has no device code"},
    {Why::cpu_torch, "{who} needs {what}, which a CPU build of torch lacks",
     "a torch for another CUDA"},
    {Why::runtime_unknown, "the version of its CUDA runtime cannot be told"},
    {Why::runtime_other, "it needs libcudart.so.{version}; torch brings CUDA {here}",
     "a torch for another CUDA"},
    {Why::runtime_driver, "its CUDA {version} runtime needs a newer driver than CUDA {here}",
     "a torch for another CUDA"},
    {Why::driver_older, "[for {who} ]it needs driver {version}; {here} is here",
     "driver {version} or newer"},
    {Why::driver_unknown,
     "{file} has a CUDA runtime inside; which driver that needs is not known without --deep; "
     "{here} is here",
     "ask again with --deep; any runtime works with driver {version}"},
    {Why::gpu_unserved, "{file} has no code for {what} ({version}): a call of its kernels fails",
     "another GPU, or a build for {version}"},
    {Why::only_sources,
     "it has no wheel for this machine, only sources that would be compiled here"},
};

constexpr bool every_reason_has_words() {
  for (std::size_t i = 0; i < std::size(words); ++i)
    if (words[i].why != static_cast<Why>(i)) return false;
  return words[std::size(words) - 1].why == Why::only_sources;
}
static_assert(every_reason_has_words());

// Returns where a library that nothing brings can be found.
std::string source_of(const std::string& library) {
  if (is_driver_library(library)) return "a machine with NVIDIA's driver";
  if (is_torch_library(library)) return "a torch that is built with CUDA";
  const auto distributions = cuda_distributions_of(library);
  return distributions.empty() ? "a system with " + library
                               : "pip install " + distributions.front();
}

std::string part_of(const Reason& reason, std::string_view name) {
  const auto& [why, who, what, version, here] = reason;
  if (name == "who") return who;
  if (name == "file") return base_name(who);
  if (name == "what") return what;
  if (name == "symbol") return demangle(what);
  if (name == "source") return source_of(what);
  if (name == "version") return version;
  if (name == "torch") return version.empty() ? "another torch" : "torch " + version;
  if (name == "python")
    return who.empty() ? "it needs Python " + version : who + " exists since Python " + version;
  if (name == "cuda") return here == "cpu" ? "no CUDA" : "CUDA " + here;
  if (name == "absent") return here.empty() ? "; none is here" : "";
  if (name == "layout doubt") return std::string(layout_doubt);
  return here;
}

std::string filled(std::string_view text, const Reason& reason) {
  std::string result;
  std::size_t bracket = 0;
  bool lacks = false;
  while (!text.empty()) {
    const auto mark = text.find_first_of("{[]");
    result += text.substr(0, mark);
    if (mark == text.npos) break;
    text.remove_prefix(mark);
    std::size_t taken = 1;
    if (text.front() == '{') {
      taken = text.find('}') + 1;
      const auto part = part_of(reason, text.substr(1, taken - 2));
      lacks |= part.empty();
      result += part;
    } else if (text.front() == '[') {
      bracket = result.size();
      lacks = false;
    } else if (lacks) {
      result.resize(bracket);
    }
    text.remove_prefix(taken);
  }
  return result;
}

}  // namespace

std::string reason_text(const Reason& reason) {
  return filled(words[static_cast<std::size_t>(reason.why)].sentence, reason);
}

std::string change_text(const Reason& reason) {
  const auto change = words[static_cast<std::size_t>(reason.why)].change;
  const bool is_said = reason.why == Why::torch_unsaid && !reason.here.empty();
  return change.empty() || is_said ? reason_text(reason) : filled(change, reason);
}

}  // namespace wheelscope
