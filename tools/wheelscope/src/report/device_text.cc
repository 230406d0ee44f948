// Writes the part of `show` about device code.
#include "report/style.h"

#include <array>
#include <cstdio>

#include "report/text.h"

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

}  // namespace

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

}  // namespace wheelscope
