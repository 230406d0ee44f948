// Writes what `show` and `check` have to say.
#include "text_report.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "claims.h"

namespace wheelscope {
namespace {

constexpr std::size_t label_width = 12;

std::string joined(const std::vector<std::string>& words, const char* separator = ", ") {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

// Lines "  label   value"; a repeated label is left blank.
class Lines {
 public:
  explicit Lines(const Style& style) : style_(style) {}
  void add(const std::string& label, const std::string& value) {
    text += "  " + style_.dim(padded(label == last_ ? "" : label, label_width)) + value + "\n";
    last_ = label;
  }
  // A list, a few to a line.
  void add_list(const std::string& label, const std::vector<std::string>& values,
                std::size_t most = 6) {
    for (std::size_t i = 0; i < std::min(values.size(), most); ++i) add(label, values[i]);
    if (values.size() > most) add(label, "and " + std::to_string(values.size() - most) + " more");
  }
  std::string text;

 private:
  const Style& style_;
  std::string last_;
};

void show_wheel(const WheelClaims& wheel, Lines& lines) {
  lines.add("wheel",
            wheel.name + " " + wheel.version + (wheel.summary.empty() ? "" : "  " + wheel.summary));
  lines.add_list("tags", wheel.file_name_tags);
  if (wheel.wheel_file_tags != wheel.file_name_tags)
    lines.add("WHEEL tags", wheel.wheel_file_tags.empty() ? "none" : joined(wheel.wheel_file_tags));
  lines.add("RECORD", std::to_string(wheel.record_verified) + " files verified");
  if (!wheel.generator.empty()) lines.add("made by", wheel.generator);
  if (!wheel.requires_python.empty()) lines.add("requires", "Python " + wheel.requires_python);
  lines.add_list("requires", wheel.requires_dist);
}

std::string python_sentence(const PythonVerdict& python) {
  if (python.kind == "none") return "every Python: nothing here uses its C API";
  if (python.kind == "abi3") return "abi3, Python >= " + python.min.value_or("?");
  return python.min ? "Python " + *python.min + " only"
                    : "one version of Python, which the files do not name";
}

std::string torch_sentence(const TorchVerdict& torch) {
  if (torch.kind == "none") return "does not link to torch";
  if (torch.kind == "cxx") return "bound to torch's C++ ABI: loads on the torch it was built for";
  return torch.min ? "stable ABI, torch >= " + *torch.min : "stable ABI";
}

std::string cuda_sentence(const CudaVerdict& cuda) {
  if (cuda.runtime == "none")
    return cuda.targets.empty() ? "none" : "device code without a CUDA runtime of its own";
  std::string version = cuda.runtime_version.value_or("of unknown version");
  for (std::size_t i = 1; i < cuda.runtime_choices.size(); ++i)
    version += " or " + cuda.runtime_choices[i];
  return cuda.runtime + " runtime " + version +
         (cuda.min_driver ? ", driver >= " + *cuda.min_driver : "");
}

void show_targets(const CudaVerdict& cuda, Lines& lines) {
  for (const auto& code : cuda.targets) {
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%-13s %6llu %-7s %10s %10s unpacked  %s%s",
                  ((code.kind == "ptx" ? "compute_" : "sm_") + code.target).c_str(),
                  static_cast<unsigned long long>(code.count),
                  code.kind == "ptx" ? "PTX" : "cubins", human_size(code.bytes).c_str(),
                  human_size(code.uncompressed_bytes).c_str(), code.compression.c_str(),
                  code.relocatable ? "  relocatable" : "");
    lines.add("device code", line.data());
  }
}

void show_gpus(const CudaVerdict& cuda, const Style& style, Lines& lines) {
  for (const auto& gpu : cuda.gpus) {
    const auto verdict = padded(gpu.served == "jit"  ? "JIT"
                                : gpu.served == "no" ? "not served"
                                                     : gpu.served,
                                11);
    const auto painted = gpu.served == "native" ? style.good(verdict)
                         : gpu.served == "jit"  ? style.warn(verdict)
                                                : style.bad(verdict);
    lines.add("GPUs", painted + padded(gpu.capability, 5) + padded(gpu.by, 14) +
                          padded(gpu.min_driver ? "driver >= " + *gpu.min_driver : "", 23) +
                          gpu.name);
  }
}

std::string hardening_words(const LibraryFacts& library) {
  const auto& hard = library.hardening;
  std::string words = "RELRO " + hard.relro + (hard.bind_now ? ", bind now" : ", lazy binding") +
                      (hard.nx ? ", NX" : ", executable stack");
  if (hard.stack_protector) words += ", stack protector";
  if (hard.text_relocations) words += ", text relocations";
  return words;
}

void show_library(const LibraryFacts& library, const Style& style, std::string& text) {
  text += "\n  " + style.bold(library.path) + "\n";
  Lines lines(style);
  lines.add("file", human_size(library.size) + ", " + library.kind + ", " + library.machine +
                        (library.big_endian ? ", big-endian" : ""));
  if (library.kind == "cubin" || library.kind == "broken") {
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

}  // namespace

std::string Style::paint(const char* code, std::string_view text) const {
  if (!colour) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::string human_size(std::uint64_t bytes) {
  constexpr std::array units{" bytes", " kB", " MB", " GB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 || value >= 100 ? "%.0f%s" : "%.1f%s", value,
                units[unit]);
  return text.data();
}

std::string show_text(const Item& item, const Style& style) {
  Lines lines(style);
  lines.text = style.bold(item.file) + "  " + human_size(item.size) + "\n";
  if (item.wheel) show_wheel(*item.wheel, lines);
  lines.add("platform", style.bold(item.platform.tag));
  lines.add_list("  because", item.platform.because, 3);
  if (!item.platform.external_libraries.empty())
    lines.add("  outside", joined(item.platform.external_libraries));
  lines.add("Python", style.bold(python_sentence(item.python)));
  lines.add_list("  because", item.python.because, 3);
  lines.add("torch", style.bold(torch_sentence(item.torch)));
  std::vector<std::string> symbols;
  std::ranges::transform(item.torch.symbols, std::back_inserter(symbols), demangle);
  lines.add_list("  because", symbols, 3);
  lines.add("CUDA", style.bold(cuda_sentence(item.cuda)));
  lines.add_list("  evidence", item.cuda.evidence, 4);
  show_targets(item.cuda, lines);
  show_gpus(item.cuda, style, lines);
  for (const auto& [part, bytes] : item.size_by_part)
    lines.add("unpacked", padded(human_size(bytes), 10) + part);
  for (const auto& library : item.libraries) show_library(library, style, lines.text);
  if (!item.findings.empty()) lines.text += "\n" + findings_text(item.findings, style);
  return lines.text;
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
