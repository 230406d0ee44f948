// Writes the answers of `cover`, `link`, `diff` and `dump`.
#include <algorithm>

#include "answers/owners.h"
#include "report/text.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// Numbers the wheels in the order in which they appear.
class Numbers {
 public:
  std::string of(const std::string& wheel) {
    const auto found = std::ranges::find(wheels, wheel);
    if (found != wheels.end()) return std::to_string(found - wheels.begin() + 1);
    wheels.push_back(wheel);
    return std::to_string(wheels.size());
  }
  std::vector<std::string> wheels;
};

// Returns the reasons why cells are unserved, each with its cells.
std::string reasons_text(const std::vector<CellVerdict>& verdicts, const Style& style) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> groups;
  std::string text;
  for (const auto& verdict : verdicts) {
    if (!verdict.wheel.empty()) continue;
    const auto& cell = verdict.cell;
    const auto name =
        cell.arch + " torch " + cell.torch + " CUDA " + cell.cuda + " Python " + cell.python;
    for (const auto& [wheel, reason] : verdict.reasons)
      groups[{wheel, reason_text(reason)}].push_back(name);
    if (verdict.reasons.empty()) groups[{"", "no wheel was given"}].push_back(name);
  }
  for (const auto& [key, cells] : groups) {
    text += "  " + (key.first.empty() ? "" : base_name(key.first) + ": ") + style.bad(key.second) +
            "\n";
    constexpr std::size_t most = 4;
    for (std::size_t i = 0; i < std::min(cells.size(), most); ++i)
      text += "      " + cells[i] + "\n";
    if (cells.size() > most)
      text += "      and " + std::to_string(cells.size() - most) + " more cells\n";
  }
  return text;
}

}  // namespace

std::string cover_text(const std::vector<CellVerdict>& verdicts, const Style& style) {
  Numbers numbers;
  std::vector<std::string> pythons;
  for (const auto& verdict : verdicts) {
    if (!contains(pythons, verdict.cell.python)) pythons.push_back(verdict.cell.python);
  }
  std::ranges::sort(pythons, [](const std::string& a, const std::string& b) {
    return a.size() != b.size() && a.substr(0, 4) == b.substr(0, 4) ? a.size() < b.size() : a < b;
  });
  constexpr std::size_t column = 7;
  std::map<std::string, std::map<std::string, std::string>> rows;
  std::vector<std::string> order;
  for (const auto& verdict : verdicts) {
    const auto& cell = verdict.cell;
    const auto row =
        padded(cell.arch, 9) + "torch " + padded(cell.torch, 6) + "CUDA " + padded(cell.cuda, 6);
    if (!rows.contains(row)) order.push_back(row);
    rows[row][cell.python] =
        verdict.wheel.empty() ? style.bad(padded("none", column))
                              : style.good(padded("[" + numbers.of(verdict.wheel) + "]", column));
  }
  std::string text(order.empty() ? 0 : order.front().size(), ' ');
  for (const auto& python : pythons) text += padded(python, column);
  text.erase(text.find_last_not_of(' ') + 1);
  text += "\n";
  for (const auto& row : order) {
    text += row;
    for (const auto& python : pythons)
      text += rows[row].contains(python) ? rows[row][python] : padded("", column);
    while (text.ends_with(' ')) text.pop_back();
    text += "\n";
  }
  const auto unserved =
      std::ranges::count_if(verdicts, [](const auto& verdict) { return verdict.wheel.empty(); });
  text += "\n";
  for (const auto& wheel : numbers.wheels) text += "[" + numbers.of(wheel) + "] " + wheel + "\n";
  text += std::to_string(verdicts.size() - static_cast<std::size_t>(unserved)) + " of " +
          std::to_string(verdicts.size()) + " cells served\n";
  return text + reasons_text(verdicts, style);
}

std::string link_text(const LinkReport& report, const Style& style) {
  std::string text;
  std::uint64_t resolved = 0;
  for (const auto& [library, count] : report.resolved) {
    text += "  " + padded(std::to_string(count), 8) + library + "\n";
    resolved += count;
  }
  if (report.platform)
    text += "  " + padded(std::to_string(report.platform), 8) +
            "left to the platform's libraries (see its tag)\n";
  if (report.driver)
    text +=
        "  " + padded(std::to_string(report.driver), 8) + "left to the GPU driver's libraries\n";
  if (report.python)
    text += "  " + padded(std::to_string(report.python), 8) + "left to the Python interpreter\n";
  if (report.weak)
    text += "  " + padded(std::to_string(report.weak), 8) + "weak and absent, which is allowed\n";
  std::map<std::string, std::size_t> lost;  // symbols that went missing with a whole library
  for (const auto& missing : report.missing) {
    if (report.missing_libraries.contains(missing.expected_in)) {
      ++lost[missing.expected_in];
      continue;
    }
    text += "  " + style.bad("missing symbol ") + missing.demangled +
            (missing.demangled == missing.symbol ? "" : "  [" + missing.symbol + "]") +
            "\n      needed by " + missing.library +
            (missing.expected_in.empty() ? "" : ", expected in " + missing.expected_in) + ": " +
            missing.why + "\n";
  }
  for (const auto& [name, users] : report.missing_libraries) {
    text += "  " + style.bad("missing library ") + name + " with " + std::to_string(lost[name]) +
            " symbols, needed by " + *users.begin() + "\n      " + report.missing_reasons.at(name) +
            "\n";
  }
  return text + std::to_string(resolved) + " symbols resolved, " +
         std::to_string(report.missing.size()) + " missing\n";
}

std::string diff_text(const std::vector<Change>& changes, const Style& style) {
  std::string text;
  for (const auto& change : changes) {
    text += change.subject + "\n";
    if (!change.before.empty()) text += style.bad("  - " + change.before) + "\n";
    if (!change.after.empty()) text += style.good("  + " + change.after) + "\n";
  }
  return text.empty() ? "no difference for users\n" : text;
}

std::string symbols_text(const Item& item) {
  std::string text;
  const LibraryFacts* last = nullptr;
  for_each_symbol(item, [&](const LibraryFacts& library, const SymbolFact& symbol,
                            const std::string& provider) {
    if (&library != last) text += library.path + "\n";
    last = &library;
    text += symbol.defined ? "  defined  " : symbol.weak ? "  weak     " : "  needed   ";
    text += spelled(symbol.name, symbol.version, symbol.defined && symbol.default_version);
    text += provider.empty() ? "\n" : "  from " + provider + "\n";
  });
  return text;
}

}  // namespace wheelscope
