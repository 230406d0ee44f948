// Fuzzes thinning: for any wheel or library, the output is sound and a thinning of the input.
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "commands/thin.h"
#include "facts/wheel.h"

namespace wheelscope {
namespace {

const ThinFor hopper{.gpus = {"9.0"}};

// The thinned file has the device code that the plan kept, and the same host code.
void check_file(Bytes file) {
  Allowance memory(Allowance::facts_for(file.size()));
  for (const auto* path : {"x.so", "x.ptx"}) {
    const auto plans = plan_thinning(path, file, {hopper}, memory);
    if (plans.empty() || plans.front().remove || !plans.front().changes()) continue;
    const auto output = thinned(file, plans.front()).joined();
    if (output.bytes().size() != plans.front().size) std::abort();
    Gpus served, lost;
    if (compare_thinned(path, file, output.bytes(), served, lost, memory) || lost.contains("9.0"))
      std::abort();
  }
}

void check_wheel(Bytes file) {
  static const std::string folder = std::filesystem::temp_directory_path() / "wheelscope-thin-fuzz";
  static const std::string name = "pkg-1.0-cp310-abi3-manylinux_2_28_x86_64.whl";
  const ZipLimits limits{.members = 100, .member_size = 1 << 20, .total_size = 4 << 20};
  const auto thin = thin_wheel(
      {name, file}, hopper, folder, std::nullopt, [](const ThinnedWheel&) { return true; }, limits);
  if (!thin || thin->written.empty()) return;
  const auto written = Source::map(thin->written).value();
  const WheelInput output{name, written.bytes()};
  const auto check = check_thinning({name, file}, output);
  if (!check || !check->holds() || check->lost.contains("9.0")) std::abort();
  const auto facts = read_wheel(output).value();
  for (const auto& problem : facts.problems.listed) {
    if (problem.id.starts_with("zip-") || problem.id.starts_with("record-")) std::abort();
  }
}

}  // namespace

void fuzz_thin(Bytes file) {
  check_file(file);
  check_wheel(file);
}

}  // namespace wheelscope
