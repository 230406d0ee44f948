// Explains undefined symbols: whose they are, since when they exist, and what the torch here has
// instead.
#include <algorithm>
#include <set>

#include "answers/explain.h"
#include "answers/owners.h"
#include "facts/facts.h"
#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {
namespace {

enum class StringAbi { none, before_cxx11, cxx11 };

// Tells by its demangled name which of gcc's ABIs a function uses for texts.
StringAbi string_abi(const std::string& demangled) {
  if (demangled.find("std::__cxx11::") != std::string::npos) return StringAbi::cxx11;
  for (const auto* old : {"std::string", "std::basic_string<"}) {
    if (demangled.find(old) != std::string::npos) return StringAbi::before_cxx11;
  }
  return StringAbi::none;
}

// Returns c10::Error::Error for c10::Error::Error(c10::SourceLocation).
std::string without_arguments(const std::string& demangled) {
  return demangled.substr(0, demangled.find('('));
}

// Returns the first few definitions of a library with the same name and other arguments.
std::vector<std::string> variants(const LibraryFacts& library, const std::string& demangled) {
  constexpr std::size_t most = 3;
  const auto name = without_arguments(demangled);
  // The last part of the name, as mangled names have it: demangling all of them takes long.
  const auto colons = name.rfind("::");
  const auto part = colons == name.npos ? name : name.substr(colons + 2);
  const bool constructor = name.ends_with("::" + part + "::" + part);
  std::vector<std::string_view> candidates;
  for (const auto& symbol : library.symbols) {
    if (symbol.defined && symbol.name.starts_with("_Z") &&
        (constructor || symbol.name.find(part) != std::string::npos))
      candidates.push_back(symbol.name);
  }
  std::ranges::sort(candidates);
  std::set<std::string> found;
  for (const auto candidate : candidates) {
    const auto other = demangle(std::string(candidate));
    if (without_arguments(other) == name) found.insert(other);
    if (found.size() == most) break;
  }
  return {found.begin(), found.end()};
}

void compare_with_torch(const TorchFacts& torch, Disk& disk, Explanation& explanation) {
  const auto& symbol = explanation.symptom.symbol;
  const auto* library = disk.open(torch.path + "/lib/" + explanation.owner);
  auto tell_of = [&](const char* key, const std::string& variant = "") {
    tell(key, explanation,
         {{"torch", torch.version},
          {"cuda", torch.cuda},
          {"owner", explanation.owner},
          {"variant", variant}});
  };
  if (!library) return tell_of("torch-has-no-library");
  if (std::ranges::any_of(library->symbols,
                          [&](const SymbolFact& one) { return one.defined && one.name == symbol; }))
    return tell_of("torch-has-symbol");
  tell_of("torch-has-not");
  for (const auto& variant : variants(*library, explanation.demangled))
    tell_of("torch-has-variant", variant);
}

void explain_cxx_abi(const TorchFacts* torch, Explanation& explanation) {
  const auto abi = string_abi(explanation.demangled);
  if (abi == StringAbi::none) return;
  const bool cxx11 = abi == StringAbi::cxx11;
  tell(cxx11 ? "cxx11-abi" : "abi-before-cxx11", explanation);
  if (torch && torch->cxx11_abi && *torch->cxx11_abi != cxx11)
    tell("torch-uses-other-abi", explanation, {{"torch", torch->version}});
}

void explain_torch_symbol(const MachineFacts* machine, Disk& disk, Explanation& explanation) {
  const auto& symptom = explanation.symptom;
  const auto& symbol = symptom.symbol;
  if (symptom.library.contains("/torch/lib/lib") || symptom.library.contains("/torch/_C"))
    return tell("torches-are-mixed", explanation);
  const auto* torch = machine && machine->torch ? &*machine->torch : nullptr;
  if (const auto shim = torch_shims().find(symbol); shim != torch_shims().end()) {
    tell("torch-shim", explanation, {{"first", std::string(shim->second.first_version)}});
  } else {
    tell("torch-cxx", explanation);
    explain_cxx_abi(torch, explanation);
  }
  const bool of_python = explanation.owner == "libtorch_python.so", thp = symbol.starts_with("THP");
  if (of_python && thp) tell("torch-python-function", explanation);
  if (torch) compare_with_torch(*torch, disk, explanation);
  tell("torch-symbol", explanation,
       {{"torch", torch ? " (" + torch->version + ")" : ""},
        {"python", of_python ? "python" : ""},
        {"early", !torch && !thp ? "early" : ""}});
}

// True for functions of Python 2 that Python 3 removed.
bool is_of_python_2(std::string_view symbol) {
  for (const auto* gone : {"PyString_",
                           "_PyString_",
                           "PyInt_",
                           "_PyInt_",
                           "PyClass_",
                           "PyInstance_",
                           "PyCObject_",
                           "PyUnicodeUCS2_",
                           "PyUnicodeUCS4_",
                           "_PyUnicodeUCS",
                           "_Py_ZeroStruct",
                           "PyNumber_Divide",
                           "PyNumber_InPlaceDivide",
                           "PyNumber_Int",
                           "PyExc_StandardError",
                           "PyFile_AsFile",
                           "PyBaseString_Type",
                           "PyBuffer_FromMemory",
                           "PyBuffer_FromReadWriteMemory",
                           "PyEval_GetRestricted"}) {
    if (symbol.starts_with(gone)) return true;
  }
  return false;
}

void explain_python_symbol(const MachineFacts* machine, Explanation& explanation) {
  const auto& symptom = explanation.symptom;
  const auto& symbol = symptom.symbol;
  if (is_of_python_2(symbol)) {
    explanation.owner = "Python";
    return tell("python-2-symbol", explanation,
                {{"wide", symbol.contains("UnicodeUCS") ? symbol : ""}});
  }
  const auto limited = python_abi3().find(symbol);
  const auto since = limited == python_abi3().end() ? "" : std::string(limited->second);
  const auto* python = machine && machine->python ? &*machine->python : nullptr;
  tell("python-symbol", explanation,
       {{"since", since}, {"python", python ? python->version + " (" + python->abi + ")" : ""}});
  if (symbol.starts_with("Py_InitModule4") || symbol.contains("TraceRefs"))
    tell("python-symbol-of-debug", explanation);
  if (since == "3.2")
    tell("python-symbol-of-all", explanation,
         {{"macos", symptom.kind == "symbol-on-macos" ? "macos" : ""}});
  tell("python-symbol-fix", explanation, {{"since", since}});
}

// Returns libcublasLt for cublasLtMatmul: the longest name that the symbol starts with.
std::string cuda_library_of(std::string_view symbol) {
  while (symbol.starts_with('_')) symbol.remove_prefix(1);
  std::string_view best;
  for (const auto& [library, facts] : cuda_libraries()) {
    const auto stem = library.substr(3, library.find(".so") - 3);
    if (symbol.starts_with(stem) && stem.size() > best.size()) best = stem;
  }
  if (symbol.starts_with("nvtx")) best = "nvToolsExt";
  if (best.empty() && symbol.starts_with("cuda") && symbol.size() > 4 && symbol[4] < 'a')
    best = "cudart";
  return best.empty() ? "" : "lib" + std::string(best);
}

// Returns the driver's library that has a function.
const char* driver_library_of(const std::string& symbol) {
  if (symbol.starts_with("nvml")) return "libnvidia-ml.so.1";
  if (symbol.starts_with("cuvid")) return "libnvcuvid.so.1";
  return symbol.starts_with("NvEncode") ? "libnvidia-encode.so.1" : "libcuda.so.1";
}

// A function of the driver: an old one lacks only those that came after it.
void explain_driver_symbol(const MachineFacts* machine, Explanation& explanation) {
  const auto& symptom = explanation.symptom;
  explanation.owner = driver_library_of(symptom.symbol);
  const auto known = driver_symbols().find(symptom.symbol);
  const bool is_known = known != driver_symbols().end();
  const std::string since(is_known ? known->second : "");
  const auto toolkit = cuda_table().toolkit_drivers.find(since);
  tell("driver-symbol", explanation,
       {{"library", explanation.owner},
        {"since", since},
        {"needed", toolkit == cuda_table().toolkit_drivers.end() ? "" : toolkit->second},
        {"driver", machine ? machine->driver : ""},
        {"everywhere", is_known && since.empty() ? "yes" : ""},
        {"triton", symptom.library.contains(".triton") ? "yes" : ""},
        {"cuda", explanation.owner == "libcuda.so.1" ? "yes" : ""}});
}

// True for a program or library of the distribution: /usr/bin/curl, /lib/x86_64-linux-gnu/a.so.
bool is_of_the_system(std::string_view path) {
  return (path.starts_with("/usr/") || path.starts_with("/lib") || path.starts_with("/bin/")) &&
         !path.starts_with("/usr/local/") && !path.contains("-packages/");
}

// True for what any C++ program needs: new, delete, exceptions, classes with a base.
bool is_of_every_libstdcxx(std::string_view symbol) {
  for (const auto* oldest : {"__cxa_", "__gxx_personality", "_Znw", "_Zna", "_ZdlPv", "_ZdaPv",
                             "_ZTVN10__cxxabiv1", "_ZTISt9exception", "_ZSt9terminate"}) {
    if (symbol.starts_with(oldest)) return true;
  }
  return false;
}

void explain_other_symbol(const MachineFacts* machine, Explanation& explanation) {
  const auto& symptom = explanation.symptom;
  const auto platform = platform_symbols().find(symptom.symbol);
  if (!symptom.version.empty() && symptom.version.starts_with("lib")) {
    explanation.owner = symptom.version;
  } else if (symptom.version.starts_with("GLIBCXX_") || symptom.version.starts_with("CXXABI_")) {
    explanation.owner = "libstdc++.so.6";
  } else if (symptom.version.starts_with("GLIBC_")) {
    explanation.owner = "libc.so.6";
  } else if (is_driver_symbol(symptom.symbol)) {
    return explain_driver_symbol(machine, explanation);
  } else if (platform != platform_symbols().end()) {
    explanation.owner = platform->second;
  } else if (is_cxx_runtime_symbol(symptom.symbol)) {
    explanation.owner = "libstdc++.so.6";
  } else {
    explanation.owner = cuda_library_of(symptom.symbol);
  }
  if (explanation.owner.empty()) {
    explanation.owner = library_by_name(symptom.symbol);
    if (!explanation.owner.empty())
      return tell(
          is_of_the_system(symptom.library) ? "symbol-of-a-system-file" : "symbol-of-used-library",
          explanation,
          {{"owner", explanation.owner},
           {"file", base_name(symptom.library)},
           {"path", symptom.library}});
    if (symptom.symbol.starts_with("__pyx_") || symptom.symbol.starts_with("__Pyx_"))
      return tell("symbol-of-cython", explanation);
    return tell("symbol-of-nobody", explanation,
                {{"macos", symptom.kind == "symbol-on-macos" ? "macos" : ""}});
  }
  const bool of_libstdcxx = explanation.owner == "libstdc++.so.6";
  if (of_libstdcxx && symptom.version.empty() && is_of_every_libstdcxx(symptom.symbol))
    return tell("libstdcxx-not-linked", explanation);
  tell("symbol-of-a-library", explanation, {{"owner", explanation.owner}});
  if (of_libstdcxx) tell("symbol-of-libstdcxx", explanation);
  const auto cuda = machine && machine->torch ? machine->torch->cuda : std::string();
  const bool numbered = explanation.owner.contains('.');  // else any version of torch's CUDA
  std::set<std::string> names;
  for (const auto& [library, entry] : cuda_libraries()) {
    const bool same_cuda = cuda.empty() || entry.cuda == major_of(cuda);
    if (numbered ? library == explanation.owner
                 : same_cuda && library.starts_with(explanation.owner + "."))
      names.emplace(entry.distribution);
  }
  tell("symbol-of-cuda", explanation,
       {{"distributions", joined({names.begin(), names.end()}, " or ")}});
  const bool of_cuda =
      explanation.owner.starts_with("libcu") || explanation.owner.starts_with("libnv");
  tell("symbol-of-another-copy", explanation, {{"cuda", of_cuda ? "cuda" : ""}});
}

// Explains a message of musl's loader on Alpine Linux, mostly about files that were made for glibc.
void explain_symbol_on_musl(Explanation& explanation) {
  const auto& symbol = explanation.symptom.symbol;
  tell("symbol-on-musl", explanation);
  tell(is_cxx_runtime_symbol(symbol) && !platform_symbols().contains(symbol)
           ? "symbol-of-musls-libstdcxx"
           : "symbol-of-glibc",
       explanation);
  tell("symbol-on-musl-fix", explanation);
}

}  // namespace

void ask_symbol(const Asked& asked, Explanation& explanation) {
  auto& symptom = explanation.symptom;
  if (symptom.symbol.starts_with("__Z")) symptom.symbol.erase(0, 1);  // as macOS writes them
  explanation.demangled = demangle(symptom.symbol);
  symptom.set("wanted", explanation.demangled +
                            (symptom.version.empty() ? "" : " in version " + symptom.version));
  explanation.owner = torch_library_of(symptom.symbol);
  if (!explanation.owner.empty())
    explain_torch_symbol(asked.machine, asked.disk, explanation);
  else if (is_python_symbol(symptom.symbol))
    explain_python_symbol(asked.machine, explanation);
  else if (symptom.kind == "musl-symbol")
    explain_symbol_on_musl(explanation);
  else
    explain_other_symbol(asked.machine, explanation);
}

}  // namespace wheelscope
