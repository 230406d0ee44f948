// Asks the index which file of torch this machine would take, and reads what that file requires.
#include "commands/torch_lookup.h"

#include <algorithm>

#include "answers/fit.h"
#include "commands/remote_wheel.h"
#include "index/candidates.h"
#include "packaging/metadata.h"
#include "packaging/specifier.h"

namespace wheelscope {
std::string cuda_of_torch(const WheelClaims& torch, const MachineFacts& machine) {
  const auto local = torch.version.find('+');
  if (local != torch.version.npos) {
    const auto label = torch.version.substr(local + 1);
    if (!label.starts_with("cu") || label.size() < 4) return {};
    return label.substr(2, label.size() - 3) + "." + label.back();
  }
  const auto environment = linux_environment(machine.python->minor(), machine.architecture);
  for (const auto& text : torch.requires_dist) {
    const auto requirement = parse_requirement(text);
    const auto name = canonical_name(requirement.name);
    if ((!name.starts_with("nvidia-cuda-runtime") && name != "cuda-toolkit") ||
        holds(requirement.marker, environment) != true)
      continue;
    const auto specifiers = parse_specifiers(requirement.specifiers);
    if (!specifiers || specifiers->empty()) continue;
    const auto& version = specifiers->front().bound;
    return version.substr(0, version.find('.', version.find('.') + 1));
  }
  return {};
}

Result<TorchFacts> TorchLookup::find(const std::string& version) {
  const std::scoped_lock lock(mutex_);
  const auto known = known_.find(version);
  return known != known_.end() ? known->second
                               : known_.emplace(version, look_up(version)).first->second;
}

void TorchLookup::expect() {
  std::call_once(expected_, [&] { expect_candidates(http_, indexes_, "torch"); });
}

Result<TorchFacts> TorchLookup::look_up(const std::string& version) {
  TorchFacts torch{.version = version, .cuda = cuda_of_torch({.version = version}, machine_)};
  if (version.find('+') == version.npos) {
    std::vector<std::string> notes;
    const auto found =
        TRY(find_candidates(http_, indexes_, parse_requirement("torch==" + version), notes));
    const auto fitting = std::ranges::find_if(found.wheels, [&](const Candidate& one) {
      return fit_by_name(one.claims, one.file.name, machine_).fits == Fits::works;
    });
    if (fitting == found.wheels.end())
      return std::unexpected(Error{0, "the index has no torch " + version + " for this machine"});
    auto claims = fitting->claims;
    auto file = fitting->file;
    file.has_metadata = true;  // mirrors have it and do not say so; torch's archive is a large one
    auto metadata = metadata_of_index(http_, cache_, file);
    if (metadata.empty()) metadata = TRY(read_remote_metadata(http_, cache_, on_its_server(file)));
    parse_metadata(metadata, claims);
    torch.cuda = cuda_of_torch(claims, machine_);
  }
  return torch;
}

}  // namespace wheelscope
