// Writes the answers of `machine` and `explain` as text and as JSON.
#include "report/json.h"
#include "report/text.h"
#include "text/text.h"

namespace wheelscope {
namespace {

std::string or_unknown(const std::string& text) {
  return text.empty() ? "unknown" : text;
}

// Joins the libraries of each distribution on one line.
std::vector<std::string> by_distribution(const std::vector<CudaLibraryFacts>& libraries) {
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& library : libraries)
    names[library.distribution + " " + library.version].push_back(library.name);
  std::vector<std::string> lines;
  lines.reserve(names.size());
  for (const auto& [distribution, list] : names)
    lines.push_back(distribution + ": " + joined(list));
  return lines;
}

void add_python(const PythonFacts& python, Lines& lines) {
  const bool virtual_environment = python.prefix != python.base_prefix;
  lines.add("Python", python.version + ", " + python.abi + ", " + printable(python.executable));
  if (virtual_environment)
    lines.add("Python", "a virtual environment of " + printable(python.base_prefix));
  for (const auto& folder : python.site_packages) lines.add("packages", printable(folder));
  if (!python.tags.empty())
    lines.add("tags", std::to_string(python.tags.size()) + ", from " + python.tags.front() +
                          " to " + python.tags.back());
}

void add_torch(const TorchFacts& torch, Lines& lines) {
  const auto build = !torch.cuda.empty()   ? "CUDA " + torch.cuda
                     : !torch.rocm.empty() ? "ROCm " + torch.rocm
                                           : std::string("CPU build");
  const auto abi = !torch.cxx11_abi   ? ""
                   : *torch.cxx11_abi ? ", C++11 ABI"
                                      : ", C++ ABI from before C++11";
  lines.add("torch", printable(or_unknown(torch.version) + ", " + build) + abi);
}

}  // namespace

std::string machine_text(const MachineFacts& machine, const Style& style) {
  Lines lines(style);
  lines.add("machine", printable(machine.architecture));
  lines.add("C library", machine.libc.empty()
                             ? "unknown"
                             : machine.libc + " " + or_unknown(machine.libc_version));
  lines.add("driver", machine.driver.empty() ? "no NVIDIA driver" : machine.driver);
  if (machine.gpus.empty()) lines.add("GPUs", "none");
  for (const auto& gpu : machine.gpus)
    lines.add("GPUs", printable(gpu.name) + ", compute capability " + or_unknown(gpu.capability));
  if (machine.python)
    add_python(*machine.python, lines);
  else
    lines.add("Python", "none");
  if (machine.torch)
    add_torch(*machine.torch, lines);
  else
    lines.add("torch", "none");
  if (machine.cuda_libraries.empty()) lines.add("CUDA", "no library in the environment");
  for (const auto& line : by_distribution(machine.cuda_libraries))
    lines.add("CUDA", printable(line));
  for (const auto& note : machine.notes) lines.add("note", printable(note));
  return lines.text;
}

std::string explanation_text(const Explanation& explanation, const Style& style) {
  Lines lines(style);
  lines.add("what", style.bold(printable(explanation.what)));
  if (!explanation.owner.empty()) lines.add("whose", printable(explanation.owner));
  for (const auto& reason : explanation.because) lines.add("because", printable(reason));
  for (const auto& way : explanation.fixes) lines.add("fix", printable(way));
  if (!explanation.link.empty()) lines.add("see", explanation.link);
  return style.dim(printable(explanation.symptom.message)) + "\n" + lines.text;
}

FIELDS(GpuFacts, name, capability)
FIELDS(PythonFacts, executable, version, abi, prefix, base_prefix, architecture, site_packages,
       tags)
FIELDS(TorchFacts, path, version, cuda, rocm, cxx11_abi)
FIELDS(CudaLibraryFacts, name, path, distribution, version)
FIELDS(MachineFacts, architecture, libc, libc_version, driver, gpus, python, torch, cuda_libraries,
       notes)

Json to_json(const Explanation& explanation) {
  const auto& symptom = explanation.symptom;
  return {{"kind", symptom.kind},
          {"message", symptom.message},
          {"library", or_null(symptom.library)},
          {"needs", or_null(symptom.needs)},
          {"symbol", or_null(symptom.symbol)},
          {"demangled", or_null(explanation.demangled)},
          {"version", or_null(symptom.version)},
          {"provider", or_null(explanation.owner)},
          {"what", explanation.what},
          {"because", explanation.because},
          {"fix", explanation.fixes},
          {"report", or_null(explanation.link)}};
}

}  // namespace wheelscope
