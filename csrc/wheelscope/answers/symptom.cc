// Recognises messages by the words that their programs print: glibc's and musl's loaders, CPython,
// pybind11, the CUDA runtime and torch. What stands around those words varies.
#include "answers/symptom.h"

#include <algorithm>
#include <optional>

#include "text/text.h"

namespace wheelscope {
namespace {

// What stands before `mark` in the line, and after it.
struct Found {
  std::string_view before, after;
};

std::optional<Found> find_mark(std::string_view line, std::string_view mark) {
  const auto at = line.find(mark);
  if (at == line.npos) return std::nullopt;
  return Found{line.substr(0, at), line.substr(at + mark.size())};
}

std::string without_quotes(std::string_view word) {
  constexpr std::string_view quotes = "'\"`()[]{}<>";
  while (!word.empty() && quotes.find(word.front()) != quotes.npos) word.remove_prefix(1);
  while (!word.empty() && quotes.find(word.back()) != quotes.npos) word.remove_suffix(1);
  return std::string(word);
}

// "ImportError: /x/y.so" -> /x/y.so
std::string last_word(std::string_view text) {
  text = trim(text);
  while (text.ends_with(':')) text.remove_suffix(1);
  const auto space = text.find_last_of(" \t");
  return without_quotes(space == text.npos ? text : text.substr(space + 1));
}

std::string first_word(std::string_view text, std::string_view ends = " \t\r,;") {
  text = trim(text);
  return without_quotes(text.substr(0, text.find_first_of(ends)));
}

std::optional<Symptom> undefined_symbol(std::string_view line) {
  if (const auto found = find_mark(line, ": undefined symbol: ")) {
    Symptom symptom{.kind = SymptomKind::undefined_symbol,
                    .library = last_word(found->before),
                    .symbol = first_word(found->after)};
    if (const auto version = find_mark(found->after, ", version "))
      symptom.version = first_word(version->after);
    return symptom;
  }
  // x.so: symbol f, version V not defined in file y.so with link time reference
  if (const auto found = find_mark(line, ": symbol ");
      found && line.find(" with link time reference") != line.npos) {
    const auto version = find_mark(found->after, ", version ");
    return Symptom{.kind = SymptomKind::undefined_symbol,
                   .library = last_word(found->before),
                   .symbol = first_word(found->after),
                   .version = version ? first_word(version->after) : ""};
  }
  if (const auto found = find_mark(line, "undefined symbol: "))  // the file was cut off
    return Symptom{.kind = SymptomKind::undefined_symbol, .symbol = first_word(found->after)};
  // musl: Error relocating /x/y.so: name: symbol not found
  const auto musl = find_mark(line, "Error relocating ");
  if (const auto end = musl ? find_mark(musl->after, ": symbol not found") : std::nullopt) {
    const auto colon = end->before.find(": ");
    if (colon != end->before.npos)
      return Symptom{.kind = SymptomKind::undefined_symbol,
                     .library = std::string(end->before.substr(0, colon)),
                     .symbol = last_word(end->before)};
  }
  return std::nullopt;
}

std::optional<Symptom> missing_version(std::string_view line) {
  const auto found = find_mark(line, ": version `");
  if (!found) return std::nullopt;
  const auto end = find_mark(found->after, "' not found");
  if (!end) return std::nullopt;
  Symptom symptom{.kind = SymptomKind::missing_version,
                  .needs = last_word(found->before),
                  .version = std::string(end->before)};
  if (const auto by = find_mark(end->after, "(required by "))
    symptom.library = std::string(by->after.substr(0, by->after.find(')')));
  return symptom;
}

std::optional<Symptom> missing_library(std::string_view line) {
  if (const auto found = find_mark(line, ": cannot open shared object file"))
    return Symptom{.kind = SymptomKind::missing_library, .needs = last_word(found->before)};
  // musl: Error loading shared library libx.so.1: No such file or directory (needed by /y.so)
  if (const auto found = find_mark(line, "Error loading shared library ")) {
    Symptom symptom{.kind = SymptomKind::missing_library, .needs = first_word(found->after, ": ")};
    if (const auto by = find_mark(found->after, "(needed by "))
      symptom.library = std::string(by->after.substr(0, by->after.find(')')));
    return symptom;
  }
  return std::nullopt;
}

// sm_120 -> 12.0
std::string capability_of(std::string_view target) {
  if (target.starts_with("sm_")) target.remove_prefix(3);
  target = target.substr(0, target.find_first_not_of("0123456789"));
  if (target.size() < 2) return {};
  return std::string(target.substr(0, target.size() - 1)) + "." + target.back();
}

std::optional<Symptom> no_kernel_image(std::string_view line) {
  if (const auto found = find_mark(line, "with CUDA capability ");
      found && line.find("not compatible") != line.npos)
    return Symptom{.kind = SymptomKind::no_kernel_image,
                   .capability = capability_of(first_word(found->after))};
  if (const auto found = find_mark(line, "install supports CUDA capabilities ")) {
    Symptom symptom{.kind = SymptomKind::no_kernel_image};
    for (const auto& word : split(found->after, ' ')) {
      if (word.starts_with("sm_"))
        symptom.supported.push_back(word.substr(3, word.find_last_not_of(".,") - 2));
    }
    return symptom;
  }
  for (const auto* mark : {"no kernel image is available", "cudaErrorNoKernelImageForDevice"}) {
    if (line.find(mark) != line.npos) return Symptom{.kind = SymptomKind::no_kernel_image};
  }
  return std::nullopt;
}

// 12020 -> 12.2: what cudaDriverGetVersion tells
std::string cuda_of_number(std::string_view digits) {
  digits = digits.substr(0, digits.find_first_not_of("0123456789"));
  if (digits.size() < 4 || digits.size() > 6) return {};
  const int number = std::stoi(std::string(digits));
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::optional<Symptom> driver(std::string_view line) {
  if (const auto found = find_mark(line, "driver on your system is too old")) {
    Symptom symptom{.kind = SymptomKind::driver_too_old};
    if (const auto version = find_mark(found->after, "(found version "))
      symptom.cuda = cuda_of_number(version->after);
    return symptom;
  }
  for (const auto* mark :
       {"driver version is insufficient for CUDA runtime", "cudaErrorInsufficientDriver"}) {
    if (line.find(mark) != line.npos) return Symptom{.kind = SymptomKind::driver_too_old};
  }
  if (line.find("Found no NVIDIA driver") != line.npos)
    return Symptom{.kind = SymptomKind::no_driver};
  for (const auto* mark :
       {"PTX was compiled with an unsupported toolchain", "cudaErrorUnsupportedPtxVersion",
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}) {
    if (line.find(mark) != line.npos) return Symptom{.kind = SymptomKind::ptx_too_new};
  }
  return std::nullopt;
}

std::optional<Symptom> unusable_file(std::string_view line) {
  if (const auto found = find_mark(line, ": wrong ELF class"))
    return Symptom{.kind = SymptomKind::other_machine,
                   .library = last_word(found->before),
                   .version = first_word(found->after.substr(std::min<std::size_t>(
                       found->after.find_first_not_of(": "), found->after.size())))};
  for (const auto* mark : {": file too short", ": invalid ELF header"}) {
    if (const auto found = find_mark(line, mark))
      return Symptom{.kind = SymptomKind::damaged_file, .library = last_word(found->before)};
  }
  return std::nullopt;
}

std::optional<Symptom> python_abi(std::string_view line) {
  if (const auto found = find_mark(line, "does not define module export function"))
    return Symptom{.kind = SymptomKind::python_abi, .symbol = first_word(found->after)};
  if (const auto found = find_mark(line, "module was compiled for Python "))
    return Symptom{.kind = SymptomKind::python_abi, .python = first_word(found->after)};
  return std::nullopt;
}

// Whether two messages are about the same thing; what only one of them says goes to the first.
bool merge(Symptom& first, const Symptom& second) {
  if (first.kind != second.kind) return false;
  if (first.kind == SymptomKind::no_kernel_image) {
    if (first.capability.empty()) first.capability = second.capability;
    if (first.supported.empty()) first.supported = second.supported;
    return true;
  }
  if (first.kind == SymptomKind::driver_too_old) {
    if (first.cuda.empty()) first.cuda = second.cuda;
    return true;
  }
  return first.library == second.library && first.needs == second.needs &&
         first.symbol == second.symbol && first.version == second.version &&
         first.python == second.python;
}

}  // namespace

std::vector<Symptom> recognise(std::string_view text) {
  constexpr std::size_t most = 100;
  std::vector<Symptom> symptoms;
  while (!text.empty() && symptoms.size() < most) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    for (const auto& reader : {undefined_symbol, missing_version, missing_library, no_kernel_image,
                               driver, unusable_file, python_abi}) {
      auto symptom = reader(line);
      if (!symptom) continue;
      symptom->message = trim(line);
      if (std::ranges::none_of(symptoms, [&](auto& known) { return merge(known, *symptom); }))
        symptoms.push_back(std::move(*symptom));
      break;
    }
  }
  return symptoms;
}

const char* name_of(SymptomKind kind) {
  switch (kind) {
    case SymptomKind::undefined_symbol:
      return "undefined-symbol";
    case SymptomKind::missing_version:
      return "missing-version";
    case SymptomKind::missing_library:
      return "missing-library";
    case SymptomKind::no_kernel_image:
      return "no-kernel-image";
    case SymptomKind::driver_too_old:
      return "driver-too-old";
    case SymptomKind::no_driver:
      return "no-driver";
    case SymptomKind::ptx_too_new:
      return "ptx-too-new";
    case SymptomKind::other_machine:
      return "other-machine";
    case SymptomKind::damaged_file:
      return "damaged-file";
    case SymptomKind::python_abi:
      return "python-abi";
    case SymptomKind::numpy_abi:
      return "numpy-abi";
  }
  return "";
}

}  // namespace wheelscope
