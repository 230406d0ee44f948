// Judges the platform: the newest of the policies that the needed symbol versions name (PEP 600, as
// auditwheel does).
#include "verdicts/platform.h"

#include <algorithm>

#include "packaging/tag.h"
#include "tables/tables.h"
#include "text/dotted_version.h"
#include "text/text.h"

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

}  // namespace

PlatformVerdict judge_platform(const std::vector<LibraryFacts>& libraries,
                               const std::string& claimed_architecture) {
  PlatformVerdict verdict{.tag = "any"};
  std::vector<const LibraryFacts*> hosts;
  for (const auto& library : libraries) {
    if (library.role == Role::host && library.kind != FileKind::broken &&
        library.kind != FileKind::archive)
      hosts.push_back(&library);
  }
  if (hosts.empty()) return verdict;
  const auto architecture =
      claimed_architecture.empty() ? hosts.front()->machine : claimed_architecture;
  std::erase_if(hosts,
                [&](const LibraryFacts* library) { return library->machine != architecture; });
  verdict.needs_no_libc = std::ranges::all_of(hosts, [](const auto* library) {
    return library->needed.empty() && library->interpreter.empty();
  });
  const bool musl =
      std::ranges::any_of(hosts, [](const auto* library) { return is_musl(*library); });
  const auto& table = platform_table(musl ? "musllinux" : "manylinux");
  verdict.tag = "linux_" + architecture;
  const auto found = table.arches.find(architecture);
  if (found == table.arches.end()) return verdict;
  const auto& policies = found->second.policies;

  std::set<std::string> inside, external, because;
  for (const auto* library : hosts) {
    inside.insert(base_name(library->path));
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
        if (version.starts_with("GLIBC_") && older(verdict.glibc, version.substr(6)))
          verdict.glibc = version.substr(6);
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

std::string glibc_beside(const std::string& version, const std::string& architecture) {
  const auto& arches = platform_table("manylinux").arches;
  const auto arch = arches.find(architecture);
  const auto split = version.find('_');
  if (arch == arches.end() || split == version.npos) return {};
  const auto& known = arch->second.symbol_versions;
  const auto prefix = known.find(std::string_view(version).substr(0, split));
  if (prefix == known.end()) return {};
  const auto policy = prefix->second.find(std::string_view(version).substr(split + 1));
  if (policy == prefix->second.end()) return {};
  auto name = std::string(policy->second);
  std::ranges::replace(name, '_', '.');
  return name.substr(name.find('.') + 1);  // manylinux.2.34
}

bool claims_too_much(const std::string& tag, const PlatformVerdict& verdict) {
  if (verdict.needs_no_libc || !promises_more(tag, verdict.tag)) return false;
  const auto architecture = architecture_of_tag(tag);
  if (architecture != architecture_of_tag(verdict.tag) || !tag.starts_with("manylinux_"))
    return true;
  const auto& arches = platform_table("manylinux").arches;
  const auto arch = arches.find(architecture);
  if (arch == arches.end()) return true;
  // The table's next policy after the tag, if the tag is none of them itself.
  for (const auto policy : arch->second.policies) {
    const auto full = std::string(policy) + "_" + architecture;
    if (full == tag) return true;
    if (promises_more(tag, full)) {
      const auto glibc = tag.substr(10, tag.size() - architecture.size() - 11);  // 2_29
      return full != verdict.tag || older(glibc, verdict.glibc);
    }
  }
  return true;
}

}  // namespace wheelscope
