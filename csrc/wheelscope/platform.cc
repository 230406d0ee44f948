// Judges the platform: the newest of the policies that the needed symbol versions name (PEP 600, as
// auditwheel does).
#include "platform.h"

#include <algorithm>

#include "tables.h"
#include "version.h"

namespace wheelscope {
namespace {

bool is_loader(std::string_view library) {
  return library.starts_with("ld-linux") || library == "ld64.so.1" || library == "ld64.so.2" ||
         library.starts_with("libc.musl-");  // musl's loader and libc are one file
}

bool is_musl(const LibraryFacts& library) {
  return std::ranges::any_of(library.needed, [](const std::string& name) {
    return name.starts_with("libc.musl-") || name == "libc.so";
  });
}

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// The first alias-free name of a tag without its architecture: manylinux2014_x86_64 ->
// manylinux_2_17.
std::string policy_of_tag(std::string_view tag) {
  const auto architecture = architecture_of_tag(tag);
  if (architecture.empty()) return std::string(tag);
  const auto policy = tag.substr(0, tag.size() - architecture.size() - 1);
  const auto& aliases = platform_table("manylinux").aliases;
  const auto alias = aliases.find(policy);
  return std::string(alias == aliases.end() ? policy : alias->second);
}

}  // namespace

std::string architecture_of_tag(std::string_view tag) {
  static constexpr std::string_view known[] = {
      "x86_64", "aarch64", "i686", "armv7l", "ppc64le", "ppc64", "s390x", "riscv64", "loongarch64"};
  for (auto name : known) {
    if (tag.ends_with(name) && tag.size() > name.size()) return std::string(name);
  }
  return {};
}

bool promises_more(std::string_view a, std::string_view b) {
  const auto left = policy_of_tag(a), right = policy_of_tag(b);
  if (left == right || left == "linux" || right == "any") return false;
  if (left.substr(0, left.find('_')) != right.substr(0, right.find('_')))
    return true;                                    // another libc, or none promised
  if (left.starts_with("musllinux")) return false;  // musl leaves no trace of its version
  return older(left, right);
}

PlatformVerdict judge_platform(const std::vector<LibraryFacts>& libraries,
                               const std::string& claimed_architecture) {
  PlatformVerdict verdict{.tag = "any"};
  std::vector<const LibraryFacts*> hosts;
  for (const auto& library : libraries) {
    if (library.kind != "cubin" && library.kind != "broken") hosts.push_back(&library);
  }
  if (hosts.empty()) return verdict;
  const auto architecture =
      claimed_architecture.empty() ? hosts.front()->machine : claimed_architecture;
  std::erase_if(hosts,
                [&](const LibraryFacts* library) { return library->machine != architecture; });
  const bool musl =
      std::ranges::any_of(hosts, [](const auto* library) { return is_musl(*library); });
  const auto& table = platform_table(musl ? "musllinux" : "manylinux");
  verdict.tag = "linux_" + architecture;
  const auto found = table.arches.find(architecture);
  if (found == table.arches.end()) return verdict;
  const auto& policies = found->second.policies;

  std::set<std::string> inside, external, because;
  for (const auto* library : hosts) {
    inside.insert(file_name(library->path));
    if (!library->soname.empty()) inside.insert(library->soname);
  }
  auto rank = [&](std::string_view policy) {
    return static_cast<std::size_t>(std::ranges::find(policies, policy) - policies.begin());
  };
  // musl has no symbol versions: nothing rules its newest release out.
  std::size_t worst = musl ? policies.size() - 1 : 0;
  auto require = [&](std::size_t policy, const std::string& reason) {
    if (policy > worst) because.clear();
    if (policy > 0 && policy >= worst) because.insert(reason);
    worst = std::max(worst, policy);
  };
  for (const auto* library : hosts) {
    for (const auto& [provider, versions] : library->version_needs) {
      if (is_loader(provider)) continue;
      for (const auto& version : versions) {
        const auto split = version.find('_');
        const auto prefix =
            found->second.symbol_versions.find(std::string_view(version).substr(0, split));
        if (split == version.npos || prefix == found->second.symbol_versions.end()) continue;
        const auto policy = prefix->second.find(version.substr(split + 1));
        require(policy == prefix->second.end() ? policies.size() : rank(policy->second),
                version + " from " + provider + " in " + library->path);
      }
    }
    for (const auto& name : library->needed) {
      if (!is_loader(name) && !inside.contains(name) && !table.libraries.contains(name))
        external.insert(name);
    }
  }
  if (worst < policies.size()) verdict.tag = std::string(policies[worst]) + "_" + architecture;
  verdict.because.assign(because.begin(), because.end());
  verdict.external_libraries.assign(external.begin(), external.end());
  return verdict;
}

}  // namespace wheelscope
