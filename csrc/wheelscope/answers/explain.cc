// Explains what the GPU, the driver and Python said; the loader's messages are explained in
// explain_symbol.cc and explain_library.cc.
#include "answers/explain.h"

#include <algorithm>

#include "tables/tables.h"
#include "text/dotted_version.h"
#include "text/text.h"
#include "verdicts/cuda.h"

namespace wheelscope {
namespace {

std::string or_that_file(const std::string& path) {
  return path.empty() ? "the library" : base_name(path);
}

const CudaTable::Gpu* gpu_of(const std::string& capability) {
  const auto& gpus = cuda_table().gpus;
  const auto found = std::ranges::find(gpus, capability, &CudaTable::Gpu::capability);
  return found == gpus.end() ? nullptr : &*found;
}

void explain_gpu(const std::string& capability, Explanation& explanation) {
  const auto& supported = explanation.symptom.supported;
  if (const auto* gpu = gpu_of(capability))
    explanation.because.push_back("compute capability " + capability + ": " + gpu->name +
                                  "; the first driver that knows it is " + gpu->driver);
  const auto serving = std::ranges::find_if(
      supported, [&](const auto& target) { return sass_serves(target, capability); });
  if (supported.empty()) return;
  if (serving == supported.end())
    explanation.because.push_back("this torch has code for sm_" + joined(supported, ", sm_") +
                                  ", and none of it runs on " + capability);
  else
    explanation.because.push_back("torch's own sm_" + *serving + " runs on " + capability +
                                  ": it is another library that lacks it");
}

void explain_no_kernel_image(const MachineFacts* machine, Explanation& explanation) {
  explanation.what =
      "A kernel was started for which its library has no code that this GPU runs, and no PTX that "
      "the driver could compile for it.";
  explanation.provider = "the library that holds the kernel";
  std::vector<std::string> capabilities;
  if (!explanation.symptom.capability.empty()) {
    capabilities.push_back(explanation.symptom.capability);
  } else if (machine) {
    for (const auto& gpu : machine->gpus) {
      if (!gpu.capability.empty() &&
          std::ranges::find(capabilities, gpu.capability) == capabilities.end())
        capabilities.push_back(gpu.capability);
    }
  }
  for (const auto& capability : capabilities) explain_gpu(capability, explanation);
  explanation.mend.emplace_back(
      "`wheelscope show FILE` lists, for each library of a wheel, the GPUs that it serves: take a "
      "build that serves this one");
  if (!capabilities.empty())
    explanation.mend.push_back("or build the package here with TORCH_CUDA_ARCH_LIST=\"" +
                               joined(capabilities, ";") + "\"");
}

void explain_driver_too_old(const MachineFacts* machine, Explanation& explanation) {
  explanation.what = "The CUDA runtime of the program is newer than the driver allows.";
  explanation.provider = "the NVIDIA driver";
  const auto& symptom = explanation.symptom;
  if (!symptom.cuda.empty())
    explanation.because.push_back("the driver is for CUDA " + symptom.cuda);
  if (machine && !machine->driver.empty())
    explanation.because.push_back("the driver here is " + machine->driver);
  const auto runtime = machine && machine->torch ? machine->torch->cuda : std::string();
  for (const auto& [major, driver] : cuda_table().drivers) {
    if (!runtime.empty() && major != runtime.substr(0, runtime.find('.'))) continue;
    explanation.because.push_back("CUDA " + major + " needs driver " + driver + " or newer");
  }
  if (machine && !runtime.empty())
    explanation.because.push_back("torch " + machine->torch->version + " here is built for CUDA " +
                                  runtime);
  explanation.mend.emplace_back("install a newer driver on the machine (not in its containers)");
  const auto allowed = symptom.cuda.empty() ? std::string("an older major version")
                                            : symptom.cuda.substr(0, symptom.cuda.find('.'));
  explanation.mend.push_back("or take builds of torch and of its extensions for CUDA " + allowed);
}

void explain_no_driver(const MachineFacts* machine, Explanation& explanation) {
  explanation.what = "CUDA was asked for, and there is no NVIDIA driver.";
  explanation.provider = "the NVIDIA driver";
  if (machine)
    explanation.because.push_back(machine->driver.empty()
                                      ? "there is none on this machine either"
                                      : "this machine has driver " + machine->driver);
  explanation.mend.emplace_back(
      "run on a machine with a GPU; in a container, start it with --gpus all");
}

void explain_ptx_too_new(const MachineFacts* machine, Explanation& explanation) {
  explanation.what =
      "The library has no machine code for this GPU, and its PTX is of a newer CUDA than the "
      "driver "
      "can compile.";
  explanation.provider = "the NVIDIA driver";
  if (machine && !machine->driver.empty()) {
    std::string newest;
    for (const auto& [isa, driver] : cuda_table().ptx_drivers) {
      if (!older(machine->driver, driver) && older(newest, isa)) newest = isa;
    }
    if (!newest.empty())
      explanation.because.push_back("driver " + machine->driver + " compiles PTX up to version " +
                                    newest);
  }
  explanation.mend.emplace_back("install a newer driver");
  explanation.mend.emplace_back(
      "or take a build with machine code for this GPU: `wheelscope show` "
      "calls it native");
}

void explain_other_machine(const MachineFacts* machine, Explanation& explanation) {
  const auto& symptom = explanation.symptom;
  const auto bits = symptom.version == "ELFCLASS32"   ? "32"
                    : symptom.version == "ELFCLASS64" ? "64"
                                                      : "";
  explanation.what = or_that_file(symptom.library) + " is for another kind of processor" +
                     (*bits ? ": it is a " + std::string(bits) + "-bit file." : ".");
  if (machine) explanation.because.push_back("Python here is for " + machine->architecture);
  explanation.mend.emplace_back(
      "install the package again with the pip of this Python; a file that was copied from another "
      "machine, or lies in LD_LIBRARY_PATH, must go");
}

void explain_damaged_file(Explanation& explanation) {
  explanation.what = or_that_file(explanation.symptom.library) + " is no whole library.";
  explanation.because.emplace_back(
      "a download or an installation was cut off, or a text stands where the library should be "
      "(a Git LFS pointer, a linker script)");
  explanation.mend.emplace_back(
      "install the package again: pip install --force-reinstall "
      "--no-cache-dir NAME");
}

void explain_python_abi(const MachineFacts* machine, Explanation& explanation) {
  const auto& symptom = explanation.symptom;
  explanation.provider = "Python";
  explanation.what = symptom.python.empty()
                         ? "The file that Python found under the module's name has no " +
                               (symptom.symbol.empty() ? "PyInit function" : symptom.symbol) + "."
                         : "The module was made for Python " + symptom.python + ".";
  if (symptom.python.empty())
    explanation.because.emplace_back(
        "it was made for Python 2, was renamed, or is a library and no module");
  if (machine && machine->python)
    explanation.because.push_back("Python here is " + machine->python->version + " (" +
                                  machine->python->abi + ")");
  explanation.mend.emplace_back("install the package again with the pip of this Python");
}

}  // namespace

Explanation explain(const Symptom& symptom, const MachineFacts* machine, Disk& disk) {
  Explanation explanation{.symptom = symptom};
  switch (symptom.kind) {
    case SymptomKind::undefined_symbol:
      explain_undefined_symbol(machine, disk, explanation);
      break;
    case SymptomKind::missing_version:
      explain_missing_version(machine, disk, explanation);
      break;
    case SymptomKind::missing_library:
      explain_missing_library(machine, explanation);
      break;
    case SymptomKind::no_kernel_image:
      explain_no_kernel_image(machine, explanation);
      break;
    case SymptomKind::driver_too_old:
      explain_driver_too_old(machine, explanation);
      break;
    case SymptomKind::no_driver:
      explain_no_driver(machine, explanation);
      break;
    case SymptomKind::ptx_too_new:
      explain_ptx_too_new(machine, explanation);
      break;
    case SymptomKind::other_machine:
      explain_other_machine(machine, explanation);
      break;
    case SymptomKind::damaged_file:
      explain_damaged_file(explanation);
      break;
    case SymptomKind::python_abi:
      explain_python_abi(machine, explanation);
      break;
    case SymptomKind::numpy_abi:
      break;
  }
  return explanation;
}

}  // namespace wheelscope
