// Writes the part of `show` about a wheel or file as a whole.
#include <algorithm>
#include <array>
#include <cstdio>

#include "report/style.h"
#include "report/text.h"

namespace wheelscope {
namespace {

void show_wheel(const WheelClaims& wheel, Lines& lines) {
  lines.add("wheel",
            wheel.name + " " + wheel.version + (wheel.summary.empty() ? "" : "  " + wheel.summary));
  lines.add_list("tags", wheel.file_name_tags);
  if (wheel.wheel_file_tags != wheel.file_name_tags)
    lines.add("WHEEL tags", wheel.wheel_file_tags.empty() ? "none" : joined(wheel.wheel_file_tags));
  if (!wheel.variant.empty()) lines.add("variant", wheel.variant);
  lines.add_list("variant", wheel.variant_properties);
  lines.add("RECORD", std::to_string(wheel.record_verified) + " files verified");
  if (!wheel.generator.empty()) lines.add("made by", wheel.generator);
  if (!wheel.requires_python.empty()) lines.add("requires", "Python " + wheel.requires_python);
  lines.add_list("requires", wheel.requires_dist);
}

std::string python_sentence(const PythonVerdict& python) {
  switch (python.abi) {
    case PythonAbi::none:
      return "every Python: nothing here uses its C API";
    case PythonAbi::abi3:
      return "abi3, Python >= " + python.min.value_or("?");
    case PythonAbi::abi3t:
      return "abi3t, Python >= " + python.min.value_or("?") + ", free-threaded too";
    default:
      return python.versions.empty() ? "one version of Python, which the files do not name"
                                     : "Python " + joined(python.versions) + " only";
  }
}

std::string torch_sentence(const TorchVerdict& torch) {
  if (torch.abi == TorchAbi::none) return "does not link to torch";
  if (torch.abi == TorchAbi::cxx)
    return "bound to torch's C++ ABI: loads on the torch it was built for";
  return torch.min ? "stable ABI, torch >= " + *torch.min : "stable ABI";
}

std::string numpy_sentence(const NumpyVerdict& numpy) {
  const auto oldest = numpy.min ? ", NumPy >= " + *numpy.min : "";
  switch (numpy.abi) {
    case NumpyAbi::one:
      return "built for NumPy 1: its modules fail beside NumPy 2" + oldest;
    case NumpyAbi::two:
      return "built for NumPy 2" + oldest;
    default:
      return "built for NumPy 1 and 2" + oldest;
  }
}

std::string cuda_sentence(const CudaVerdict& cuda) {
  if (cuda.runtime == CudaRuntime::none)
    return cuda.targets.empty() ? "none" : "device code without a CUDA runtime of its own";
  std::string version = cuda.runtime_version.value_or("of unknown version");
  for (std::size_t i = 1; i < cuda.runtime_choices.size(); ++i)
    version += " or " + cuda.runtime_choices[i];
  return std::string(name_of(cuda.runtime)) + " runtime " + version +
         (cuda.min_driver ? ", driver >= " + *cuda.min_driver : "");
}

std::string hardening_words(const LibraryFacts& library) {
  const auto& hard = library.hardening;
  std::string words = std::string("RELRO ") + name_of(hard.relro) +
                      (hard.bind_now ? ", bind now" : ", lazy binding") +
                      (hard.nx ? ", NX" : ", executable stack");
  if (hard.stack_protector) words += ", stack protector";
  if (hard.text_relocations) words += ", text relocations";
  return words;
}

void show_library(const LibraryFacts& library, const Style& style, std::string& text) {
  text += "\n  " + style.bold(library.path) + "\n";
  Lines lines(style);
  lines.add("file", human_size(library.size) + ", " + name_of(library.kind) + ", " +
                        library.machine + (library.big_endian ? ", big-endian" : "") +
                        (library.role == Role::foreign ? ", not judged" : ""));
  if (!library.device_code.empty()) lines.add("device code", target_sizes(library.device_code));
  if (!library.loadable()) {
    text += lines.text;
    return;
  }
  if (!library.soname.empty()) lines.add("SONAME", library.soname);
  if (!library.needed.empty()) lines.add("NEEDED", joined(library.needed));
  if (!library.rpath.empty()) lines.add("RPATH", library.rpath);
  if (!library.runpath.empty()) lines.add("RUNPATH", library.runpath);
  for (const auto& [provider, versions] : library.version_needs)
    lines.add("versions", provider + ": " + joined({versions.begin(), versions.end()}));
  lines.add("hardening", hardening_words(library));
  if (!library.debug_sections.empty())
    lines.add("debug", joined(library.debug_sections));
  else if (library.has_symbol_table)
    lines.add("debug", "symbol table not stripped");
  text += lines.text;
}

// Sums up files that are not loaded by themselves: there can be thousands, so only kinds and
// numbers are shown.
std::string others_text(const std::vector<LibraryFacts>& libraries, std::size_t unlisted) {
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> kinds;  // number and bytes
  for (const auto& library : libraries) {
    if (library.loadable() || library.kind == FileKind::broken) continue;
    auto& [count, bytes] = kinds[std::string(name_of(library.kind)) + ", " + library.machine];
    ++count;
    bytes += library.size;
  }
  std::string text;
  for (const auto& [kind, sum] : kinds)
    text +=
        "\n  " + counted(sum.first, "file") + " (" + kind + "), " + human_size(sum.second) + "\n";
  if (unlisted > 0) text += "\n  and " + counted(unlisted, "more file") + "; --json has them all\n";
  return text;
}

std::string libraries_text(const std::vector<LibraryFacts>& libraries, const Style& style) {
  constexpr std::size_t most = 100;
  std::string text;
  std::size_t shown = 0, unlisted = 0;
  for (const auto& library : libraries) {
    const bool listed =
        library.loadable() || library.kind == FileKind::broken || libraries.size() < 10;
    if (!listed) continue;
    if (++shown <= most)
      show_library(library, style, text);
    else
      ++unlisted;
  }
  return libraries.size() < 10 ? text : text + others_text(libraries, unlisted);
}

}  // namespace

std::string show_text(const Item& item, const Style& style) {
  const auto& facts = item.facts;
  const auto& [platform, python, torch, numpy, cuda] = item.verdicts;
  Lines lines(style);
  lines.text = style.bold(facts.file) + "  " + human_size(facts.size) + "\n";
  if (facts.wheel) show_wheel(*facts.wheel, lines);
  lines.add("platform", style.bold(platform.tag));
  lines.add_list("  because", platform.because, 3);
  if (!platform.external_libraries.empty())
    lines.add("  outside", joined(platform.external_libraries));
  lines.add("Python", style.bold(python_sentence(python)));
  lines.add_list("  because", python.because, 3);
  lines.add("torch", style.bold(torch_sentence(torch)));
  std::vector<std::string> symbols;
  std::ranges::transform(torch.symbols, std::back_inserter(symbols), demangle);
  lines.add_list("  because", symbols, 3);
  if (numpy.abi != NumpyAbi::none) lines.add("NumPy", style.bold(numpy_sentence(numpy)));
  if (numpy.abi == NumpyAbi::one || numpy.abi == NumpyAbi::two)
    lines.add_list("  because", numpy.libraries, 3);
  lines.add("CUDA", style.bold(cuda_sentence(cuda)));
  lines.add_list("  evidence", cuda.evidence, 4);
  add_targets(cuda, lines);
  add_gpus(cuda, style, lines);
  for (const auto& [part, bytes] : facts.size_by_part)
    lines.add("unpacked", padded(human_size(bytes), 10) + part);
  lines.text += library_table(cuda, style);
  lines.text += libraries_text(facts.libraries, style);
  if (!item.findings.empty()) lines.text += "\n" + findings_text(item.findings, style);
  return lines.text;
}

bool matters(const Finding& finding) {
  return finding.level != Finding::Level::note;
}

std::string check_text(const Item& item, const Style& style) {
  const auto bad = static_cast<std::uint64_t>(std::ranges::count_if(item.findings, matters));
  return style.bold(item.facts.file) + "  " +
         (bad == 0 ? style.good("passes") : style.bad(counted(bad, "finding"))) + "\n" +
         findings_text(item.findings, style);
}

std::string findings_text(const std::vector<Finding>& findings, const Style& style) {
  std::string text;
  for (const auto& finding : findings) {
    const std::string level = name_of(finding.level);
    text += "  " + (finding.level == Finding::Level::error     ? style.bad(level)
                    : finding.level == Finding::Level::warning ? style.warn(level)
                                                               : style.dim(level));
    text += " [" + finding.id + "] " + (finding.place.empty() ? "" : finding.place + ": ") +
            finding.what;
    if (finding.offset) text += " (at offset " + std::to_string(*finding.offset) + ")";
    text += "\n" + std::string(8, ' ') + style.dim("fix: ") + finding.fix + "\n";
  }
  return text;
}

}  // namespace wheelscope
