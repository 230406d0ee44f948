// Reads the sizes that torch prints when a GPU's memory runs out, and says which of its causes it
// is.
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "answers/explain.h"

namespace wheelscope {
namespace {

// "2.87 GiB" in MiB.
std::optional<double> mebibytes(const std::string& size) {
  char* end = nullptr;
  const double number = std::strtod(size.c_str(), &end);
  if (end == size.c_str()) return {};
  const std::string_view unit(end);
  static constexpr std::pair<std::string_view, double> units[] = {
      {"GiB", 1024}, {"MiB", 1}, {"KiB", 1.0 / 1024}, {"GB", 1024}, {"MB", 1}};
  for (const auto& [name, factor] : units) {
    if (unit.find(name) != unit.npos) return number * factor;
  }
  return {};
}

std::string in_words(double size) {
  const auto tenths = std::lround(size / 1024 * 10);
  return size < 1024 ? std::to_string(std::lround(size)) + " MiB"
                     : std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

}  // namespace

void ask_memory(const Asked&, Explanation& explanation) {
  auto size = [&](const char* part) { return mebibytes(explanation.symptom.part(part)); };
  const auto asked_for = size("asked"), total = size("total"), free = size("free");
  if (!asked_for || !total) return;
  if (*asked_for > *total) {
    explanation.say(in_words(*asked_for) + " were asked for in one piece, and the GPU has " +
                    in_words(*total) + ": no setting helps, the model or its input is too big");
    return;
  }
  if (!free) return;
  // Since torch 1.4 the pool of torch (reserved) is told; what is neither in it nor free is
  // others'.
  const auto allocated = size("allocated");
  auto held = size("reserved");
  if (const auto unused = size("unused"); unused && allocated) held = *allocated + *unused;
  const double others = held ? *total - *free - *held : 0;
  if (others > *total / 4)
    explanation.say("about " + in_words(others) +
                    " are held by other processes (or by CUDA libraries of this one): end those, "
                    "settings of this process do not help");
  if (*free > *asked_for) {
    explanation.say(
        in_words(*free) + " were free, and " + in_words(*asked_for) +
        " were asked for: the memory was there and not to be had, as it is in pieces, or a limit "
        "forbids it (torch.cuda.set_per_process_memory_fraction, MPS, a virtual GPU, Windows, "
        "which counts memory of other programs as free), or another process took it");
    return;
  }
  if (!held) return;
  if (others <= *total / 4)
    explanation.say("this process holds " + in_words(*held) + " of " + in_words(*total) +
                    " itself");
  if (allocated && *held - *allocated > *asked_for)
    explanation.say(in_words(*held - *allocated) +
                    " of it are reserved and unused: they are in pieces that are too small");
}

}  // namespace wheelscope
