// Writes the answers of `show` and `check` as text.
#include "report/text.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "report/style.h"

namespace wheelscope {
namespace {

std::string noun_of(CodeKind kind) {
  switch (kind) {
    case CodeKind::sass:
      return "cubins";
    case CodeKind::ptx:
      return "PTX";
    case CodeKind::lto_ir:
      return "LTO-IR";
    default:
      return "entries";
  }
}

std::string painted(Served served, const std::string& text, const Style& style) {
  return served == Served::native ? style.good(text)
         : served == Served::jit  ? style.warn(text)
                                  : style.bad(text);
}

std::string word_of(Served served) {
  return served == Served::native ? "native" : served == Served::jit ? "JIT" : "not served";
}

// Returns what a GPU's verdict rests on, if that is not the whole wheel.
std::string remark(const GpuVerdict& gpu, bool several_libraries) {
  std::string text;
  if (several_libraries && gpu.served != Served::native) text += "  because of " + gpu.library;
  if (gpu.served != Served::no && gpu.fatbins_unserved > 0)
    text += "  (" + std::to_string(gpu.fatbins_unserved) + " of " + std::to_string(gpu.fatbins) +
            " fat binaries of " + base_name(gpu.library) + " have no code for it)";
  return text;
}

struct SizeRow {
  std::uint64_t bytes;
  std::string target, library;
};

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

std::string target_sizes(const std::vector<DeviceTarget>& targets) {
  std::map<std::pair<CodeKind, std::string>, std::uint64_t> sizes;
  std::vector<std::pair<CodeKind, std::string>> order;
  for (const auto& code : targets) {
    const std::pair key(code.kind, code.target);
    if (!sizes.contains(key)) order.push_back(key);
    sizes[key] += code.bytes;
  }
  std::vector<std::string> words;
  words.reserve(order.size());
  for (const auto& key : order)
    words.push_back(spelled(key.first, key.second) + " " + human_size(sizes[key]));
  return joined(words);
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

void add_targets(const CudaVerdict& cuda, Lines& lines) {
  for (const auto& code : cuda.targets) {
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%-13s %6llu %-7s %10s %10s unpacked  %s%s",
                  spelled(code.kind, code.target).c_str(),
                  static_cast<unsigned long long>(code.count), noun_of(code.kind).c_str(),
                  human_size(code.bytes).c_str(), human_size(code.uncompressed_bytes).c_str(),
                  code.compression.c_str(), code.relocatable ? "  relocatable" : "");
    lines.add("device code", line.data());
  }
}

void add_gpus(const CudaVerdict& cuda, const Style& style, Lines& lines) {
  for (const auto& gpu : cuda.gpus) {
    lines.add("GPUs", painted(gpu.served, padded(word_of(gpu.served), 11), style) +
                          padded(gpu.capability, 5) + padded(gpu.by, 14) +
                          padded(gpu.min_driver ? "driver >= " + *gpu.min_driver : "", 23) +
                          gpu.name + remark(gpu, cuda.libraries.size() > 1));
  }
}

std::string library_table(const CudaVerdict& cuda, const Style& style) {
  if (cuda.libraries.size() < 2) return {};
  constexpr std::size_t column = 5, most_rows = 60;
  std::string text =
      "\n  Device code by library: N native, J compiled by the driver, - no code; "
      "a star where some of its fat binaries have none\n    ";
  for (const auto& gpu : cuda.libraries.front().gpus) text += padded(gpu.capability, column);
  text += "\n";
  for (std::size_t i = 0; i < std::min(cuda.libraries.size(), most_rows); ++i) {
    const auto& library = cuda.libraries[i];
    text += "    ";
    for (const auto& gpu : library.gpus) {
      std::string mark = gpu.served == Served::native ? "N" : gpu.served == Served::jit ? "J" : "-";
      if (gpu.served != Served::no && gpu.fatbins_unserved > 0) mark += "*";
      text += painted(gpu.served, padded(mark, column), style);
    }
    text += style.bold(library.library) + "  " + target_sizes(library.targets) + "\n";
  }
  if (cuda.libraries.size() > most_rows)
    text += "    and " + std::to_string(cuda.libraries.size() - most_rows) +
            " more libraries; --json has them all\n";
  return text;
}

}  // namespace

std::string sizes_text(const Item& item, const Style& style) {
  std::vector<SizeRow> rows;
  std::uint64_t total = 0;
  std::map<std::string, std::uint64_t> loose;  // by target
  for (const auto& library : item.facts.libraries) {
    std::uint64_t device = 0;
    for (const auto& code : library.device_code) {
      device += code.bytes;
      const auto target =
          spelled(code.kind, code.target) + (code.relocatable ? " relocatable" : "");
      if (library.role == Role::device)
        loose[target] += code.bytes;
      else
        rows.push_back({code.bytes, target, library.path});
    }
    if (library.role != Role::device)
      rows.push_back({library.size - std::min(device, library.size),
                      library.role == Role::host ? "host code" : library.machine, library.path});
  }
  for (const auto& [target, bytes] : loose) rows.push_back({bytes, target, "loose files"});
  for (const auto& [part, bytes] : item.facts.size_by_part) {
    if (part != "device code" && part != "libraries") rows.push_back({bytes, part, "other files"});
  }
  for (const auto& row : rows) total += row.bytes;
  std::ranges::stable_sort(rows, std::greater{}, &SizeRow::bytes);
  constexpr std::size_t most_rows = 40;
  std::string text = style.bold(item.facts.file) + "  " + human_size(item.facts.size) + ", " +
                     human_size(total) + " unpacked\n";
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    if (i >= most_rows) {
      rest += row.bytes;
      continue;
    }
    std::array<char, 16> share{};
    std::snprintf(
        share.data(), share.size(), "%5.1f %%",
        total ? 100.0 * static_cast<double>(row.bytes) / static_cast<double>(total) : 0.0);
    text += "  " + padded(human_size(row.bytes), 11) + share.data() + "  " +
            padded(row.target, 24) + row.library + "\n";
  }
  if (rows.size() > most_rows)
    text += "  " + padded(human_size(rest), 20) + " in " + std::to_string(rows.size() - most_rows) +
            " more rows\n";
  return text;
}

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
