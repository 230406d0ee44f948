// Decides for each cell of a matrix which wheel pip would take and whether that wheel would work.
#include "answers/cover.h"

#include <algorithm>

#include "tables/toml.h"
#include "text/text.h"

namespace wheelscope {
namespace {

Reason why_not_cuda(const Item& wheel, const Cell& cell) {
  if (cell.cuda == "cpu") return why_not_without_cuda(wheel);
  const auto& cuda = wheel.verdicts.cuda;
  if (cuda.sass.empty() && cuda.ptx.empty()) return {.why = Why::no_device_code};
  return why_not_runtime(wheel, cell);
}

Reason why_not(const Item& wheel, const Cell& cell, TorchRequirements& requirements) {
  if (auto reason = why_not_arch(wheel, cell)) return reason;
  if (auto reason = why_not_python(wheel, cell)) return reason;
  if (auto reason = why_not_torch(wheel, cell, requirements)) return reason;
  return why_not_cuda(wheel, cell);
}

}  // namespace

Result<std::vector<Cell>> parse_matrix(std::string_view text) {
  const auto root = TRY(parse_toml(text));
  const auto* arches = root["arch"].as_table();
  const auto* torches = root["torch"].as_table();
  if (!arches || !torches) return fail(0, "a matrix has [arch.NAME] and [torch.\"X.Y\"] tables");
  std::vector<std::string> versions;
  for (const auto& [version, facts] : *torches) versions.emplace_back(version.str());
  std::ranges::sort(versions, older);
  std::vector<Cell> cells;
  for (const auto& [arch, ignored] : *arches) {
    for (const auto& version : versions) {
      const auto torch = (*torches)[version];
      const auto *builds = torch["cuda"].as_array(), *pythons = torch["pythons"].as_array();
      if (!builds || !pythons)
        return fail(0, "[torch.\"" + version + "\"] needs the lists `cuda` and `pythons`");
      for (const auto& cuda : *builds) {
        for (const auto& python : *pythons) {
          cells.push_back({std::string(arch.str()), version, cuda.value_or<std::string>("?"),
                           python.value_or<std::string>("?")});
        }
      }
    }
  }
  return cells;
}

Reason why_not(const Item& wheel, const Cell& cell) {
  if (!wheel.facts.wheel) return {.why = Why::not_a_wheel};
  TorchRequirements requirements(*wheel.facts.wheel);
  return why_not(wheel, cell, requirements);
}

std::vector<CellVerdict> cover(const std::vector<Item>& wheels, const std::vector<Cell>& cells) {
  std::vector<TorchRequirements> requirements;
  requirements.reserve(wheels.size());
  for (const auto& wheel : wheels)
    requirements.emplace_back(wheel.facts.wheel ? *wheel.facts.wheel : WheelClaims{});
  std::vector<CellVerdict> verdicts;
  for (const auto& cell : cells) {
    auto& verdict = verdicts.emplace_back(CellVerdict{.cell = cell});
    for (std::size_t i = 0; i < wheels.size(); ++i) {
      const auto& facts = wheels[i].facts;
      auto reason =
          facts.wheel ? why_not(wheels[i], cell, requirements[i]) : Reason{.why = Why::not_a_wheel};
      if (!reason) {
        verdict.wheel = facts.file;
        break;
      }
      verdict.reasons.emplace_back(facts.file, std::move(reason));
    }
    if (!verdict.wheel.empty()) verdict.reasons.clear();
  }
  return verdicts;
}

}  // namespace wheelscope
