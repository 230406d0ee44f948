// Judges the platform by auditwheel's rules (PEP 600): the newest policy that any symbol version,
// library, forbidden symbol or instruction requires. Also combines all verdicts on a file.

#include <algorithm>

#include "packaging/tag.h"
#include "tables/tables.h"
#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {
namespace {

using Hosts = std::vector<const LibraryFacts*>;

bool is_loader(std::string_view library) {
  return library.starts_with("ld-linux") || library == "ld64.so.1" || library == "ld64.so.2" ||
         library.starts_with("libc.musl-");  // musl's loader and libc are one file
}

Hosts hosts_of(const std::vector<LibraryFacts>& libraries) {
  Hosts hosts;
  for (const auto& library : libraries) {
    if (library.role == Role::host && library.kind != FileKind::broken &&
        library.kind != FileKind::archive)
      hosts.push_back(&library);
  }
  return hosts;
}

// Returns the system that the wheel claims, if one of its files agrees; else that of the first file
// that tells one.
System system_of(const Hosts& hosts, System claimed) {
  if (claimed == System::android) return claimed;
  auto first = System::any;
  for (const auto* library : hosts) {
    if (library->system == claimed) return claimed;
    if (first == System::any) first = library->system;
  }
  if (first != System::any) return first;
  return claimed == System::musl ? claimed : System::glibc;
}

const PlatformTable& table_of(System system) {
  return platform_table(system == System::android ? "android"
                        : system == System::musl  ? "musllinux"
                                                  : "manylinux");
}

// Collects what rules out old policies.
class PolicyFinder {
 public:
  PolicyFinder(const PlatformTable& table, const PlatformTable::Arch& arch, System system)
      : table_(table),
        arch_(arch),
        // musl has no symbol versions: nothing rules its newest release out.
        worst_(system == System::musl ? arch.policies.size() - 1 : 0) {}

  void read(const LibraryFacts& library) {
    for (const auto& [provider, versions] : library.version_needs) {
      if (is_loader(provider)) continue;
      for (const auto& version : versions) {
        const auto split = version.find('_');
        const auto prefix = arch_.symbol_versions.find(std::string_view(version).substr(0, split));
        if (split == version.npos || prefix == arch_.symbol_versions.end()) continue;
        const auto policy = prefix->second.find(version.substr(split + 1));
        require(policy == prefix->second.end() ? "" : policy->second,
                version + " from " + provider + " in " + library.path);
      }
    }
    for (const auto& name : library.needed) {
      if (const auto policy = table_.libraries.find(name); policy != table_.libraries.end())
        require(policy->second, name + " in " + library.path);
    }
    for (const auto& symbol : library.forbidden_symbols) {
      const auto [first, last] = table_.forbidden.equal_range(symbol);
      for (auto rule = first; rule != last; ++rule) {
        const auto [provider, policy] = rule->second;
        if (contains(library.needed, provider))
          require(policy, symbol + ", which is private to " + std::string(provider) + ", in " +
                              library.path);
      }
    }
    // No policy allows these builds of Python: with fpectl, or with 2-byte Unicode.
    for (const auto& [symbol, needed] : library.python_symbols) {
      if (symbol.starts_with("PyFPE_") || symbol.starts_with("PyUnicodeUCS2_"))
        require("", symbol + " in " + library.path);
    }
    if (library.isa_level > 0 && library.machine == "x86_64")
      require("",
              "x86-64-v" + std::to_string(library.isa_level) + " instructions in " + library.path);
  }

  // Returns the policy; empty if none fits.
  std::string_view found() const {
    return worst_ < arch_.policies.size() ? arch_.policies[worst_] : std::string_view();
  }
  std::vector<std::string> because() const { return {because_.begin(), because_.end()}; }

 private:
  // Requires a policy. One without a number, or "", means that none allows it.
  void require(std::string_view policy, const std::string& reason) {
    const auto rank = policy.find('_') == policy.npos
                          ? arch_.policies.size()
                          : static_cast<std::size_t>(std::ranges::count_if(
                                arch_.policies, [&](auto known) { return older(known, policy); }));
    if (rank > worst_) because_.clear();
    if (rank > 0 && rank >= worst_) because_.insert(reason);
    worst_ = std::max(worst_, rank);
  }

  const PlatformTable& table_;
  const PlatformTable::Arch& arch_;
  std::size_t worst_;
  std::set<std::string> because_;
};

std::string newest_glibc(const Hosts& hosts) {
  std::string newest;
  for (const auto* library : hosts) {
    for (const auto& [provider, versions] : library->version_needs) {
      for (const auto& version : versions) {
        if (!is_loader(provider) && version.starts_with("GLIBC_") &&
            older(newest, version.substr(6)))
          newest = version.substr(6);
      }
    }
  }
  return newest;
}

// Returns libraries that are needed, but neither in the wheel nor part of the platform.
std::vector<std::string> external_libraries(const Hosts& hosts, const PlatformTable& table,
                                            System system) {
  std::set<std::string> inside, external;
  for (const auto* library : hosts) {
    inside.insert(base_name(library->path));
    if (!library->soname.empty()) inside.insert(library->soname);
  }
  for (const auto* library : hosts) {
    for (const auto& name : library->needed) {
      const bool python = system == System::android && name.starts_with("libpython");
      if (!is_loader(name) && !inside.contains(name) && !table.libraries.contains(name) && !python)
        external.insert(name);
    }
  }
  return {external.begin(), external.end()};
}

std::vector<std::string> claimed_platforms(const std::optional<WheelClaims>& wheel) {
  std::vector<std::string> platforms;
  if (!wheel) return platforms;
  for (const auto& tag : wheel->file_name_tags) platforms.push_back(split_tag(tag).platform);
  return platforms;
}

// Trusts the tag of a wheel for another system: it has no libraries that can be judged here.
void trust_foreign_tag(const Facts& facts, PlatformVerdict& verdict) {
  if (!facts.wheel || verdict.tag != "any") return;
  for (const auto& text : facts.wheel->file_name_tags) {
    const auto platform = split_tag(text).platform;
    if (!is_linux_or_any(platform)) verdict = {.tag = platform, .because = {"the wheel says so"}};
  }
}

}  // namespace

PlatformVerdict judge_platform(const std::vector<LibraryFacts>& libraries,
                               const std::vector<std::string>& claimed) {
  PlatformVerdict verdict{.tag = "any"};
  auto hosts = hosts_of(libraries);
  if (hosts.empty()) return verdict;
  const auto tag = std::ranges::find_if(
      claimed, [](const std::string& one) { return !architecture_of_tag(one).empty(); });
  const auto architecture =
      tag == claimed.end() ? hosts.front()->machine : architecture_of_tag(*tag);
  std::erase_if(hosts, [&](const auto* library) { return library->machine != architecture; });
  verdict.needs_no_libc = std::ranges::all_of(hosts, [](const auto* library) {
    return library->needed.empty() && library->interpreter.empty();
  });
  const auto system = system_of(hosts, tag == claimed.end() ? System::any : system_of_tag(*tag));
  std::erase_if(hosts, [&](const auto* library) {
    return system != System::android && library->system != system && library->system != System::any;
  });
  const auto& table = table_of(system);
  verdict.tag = system == System::android && tag != claimed.end() ? *tag : "linux_" + architecture;
  const auto arch = table.arches.find(architecture);
  if (arch == table.arches.end()) return verdict;
  PolicyFinder finder(table, arch->second, system);
  for (const auto* library : hosts) finder.read(*library);
  verdict.glibc = newest_glibc(hosts);
  verdict.because = finder.because();
  verdict.external_libraries = external_libraries(hosts, table, system);
  auto policy = std::string(finder.found());
  if (system == System::android) {
    policy += architecture == "aarch64" ? "_arm64_v8a" : "_x86_64";
    if (tag == claimed.end() || promises_more(*tag, policy)) verdict.tag = policy;
  } else if (!policy.empty()) {
    verdict.tag = policy + "_" + architecture;
  }
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
  // Finds the table's next policy after the tag, if the table does not have the tag itself.
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
