// Judges all facts of a file: platform, Python, torch, NumPy, CUDA.
#include "packaging/tag.h"
#include "verdicts/verdicts.h"

namespace wheelscope {
namespace {

std::vector<std::string> claimed_platforms(const std::optional<WheelClaims>& wheel) {
  std::vector<std::string> platforms;
  if (!wheel) return platforms;
  for (const auto& tag : wheel->file_name_tags) platforms.push_back(split_tag(tag).platform);
  return platforms;
}

// A wheel for another system has no libraries that can be judged here: what it says is all there
// is.
void trust_foreign_tag(const Facts& facts, PlatformVerdict& verdict) {
  if (!facts.wheel || verdict.tag != "any") return;
  for (const auto& text : facts.wheel->file_name_tags) {
    const auto platform = split_tag(text).platform;
    if (!is_linux_or_any(platform)) verdict = {.tag = platform, .because = {"the wheel says so"}};
  }
}

}  // namespace

Verdicts judge(const Facts& facts) {
  Verdicts verdicts{
      .platform = judge_platform(facts.libraries, claimed_platforms(facts.wheel)),
      .python = judge_python(facts.libraries, facts.wheel),
      .torch = judge_torch(facts.libraries),
      .numpy = judge_numpy(facts.libraries),
      .cuda = judge_cuda(facts.libraries),
  };
  trust_foreign_tag(facts, verdicts.platform);
  return verdicts;
}

}  // namespace wheelscope
