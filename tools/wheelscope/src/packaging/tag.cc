// Splits and compares tags, and lists those that an installer accepts.
#include "packaging/tag.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// Returns a tag without its architecture and with its new name: manylinux_2_17 for
// manylinux2014_x86_64.
std::string policy_of_tag(std::string_view tag) {
  const auto architecture = architecture_of_tag(tag);
  if (architecture.empty() || tag.starts_with("android_")) return std::string(tag);
  const auto policy = tag.substr(0, tag.size() - architecture.size() - 1);
  const auto& aliases = platform_table("manylinux").aliases;
  const auto alias = aliases.find(policy);
  return std::string(alias == aliases.end() ? policy : alias->second);
}

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Returns the policies of the C library for one architecture, newest first, each followed by its
// old name.
std::vector<std::string> policies(const LinuxSystem& system, const std::string& architecture) {
  std::vector<std::string> tags;
  const auto parts = split(system.libc_version, '.');
  if (parts.size() < 2) return tags;
  const bool glibc = system.libc == System::glibc;
  const bool intel = architecture == "x86_64" || architecture == "i686";
  const int oldest = !glibc ? 0 : intel ? 5 : 17;
  const auto start = (glibc ? "manylinux_" : "musllinux_") + parts[0] + "_";
  for (int minor = number(parts[1]); minor >= oldest; --minor) {
    const auto policy = start + std::to_string(minor);
    tags.push_back(policy + "_" + architecture);
    for (const auto& [alias, meant] : platform_table("manylinux").aliases) {
      if (meant == policy) tags.push_back(std::string(alias) + "_" + architecture);
    }
  }
  return tags;
}

std::vector<std::string> platforms(const LinuxSystem& system) {
  std::vector<std::string> architectures{system.architecture}, tags;
  if (system.architecture == "armv8l") architectures.emplace_back("armv7l");
  for (const auto& architecture : architectures) tags.push_back("linux_" + architecture);
  for (const auto& architecture : architectures) {
    for (auto& tag : policies(system, architecture)) tags.push_back(std::move(tag));
  }
  return tags;
}

}  // namespace

Tag split_tag(std::string_view tag) {
  const auto parts = split(tag, '-');
  return parts.size() == 3 ? Tag{parts[0], parts[1], parts[2]} : Tag{};
}

std::vector<std::string> expand_tags(std::string_view pythons, std::string_view abis,
                                     std::string_view platforms) {
  constexpr std::size_t most = 1000;
  std::set<std::string> tags;
  const auto python_list = split(pythons, '.'), abi_list = split(abis, '.'),
             platform_list = split(platforms, '.');
  if (python_list.size() > most || abi_list.size() > most || platform_list.size() > most ||
      python_list.size() * abi_list.size() * platform_list.size() > most)
    return {};
  for (const auto& python : python_list) {
    for (const auto& abi : abi_list) {
      for (const auto& platform : platform_list) tags.insert(python + "-" + abi + "-" + platform);
    }
  }
  return {tags.begin(), tags.end()};
}

std::string python_version_of_tag(std::string_view digits) {
  if (digits.size() < 2) return std::string(digits);
  const auto minor = digits.substr(digits[1] == '_' ? 2 : 1);
  return std::string(1, digits[0]) + "." + std::string(minor);
}

bool admits(const Tag& tag, const PythonBuild& python) {
  const auto major = major_of(python.version);
  if (tag.python == "py" + major) return tag.abi == "none";
  if (tag.python.size() < 4) return false;
  const auto tagged = python_version_of_tag(std::string_view(tag.python).substr(2));
  const bool same_major = tagged.starts_with(major + ".");
  if (!same_major || older(python.version, tagged)) return false;
  if (tag.python.starts_with("py")) return tag.abi == "none";
  if (!tag.python.starts_with("cp")) return false;
  if (tag.abi == "abi3") return !python.free_threaded;
  if (tag.abi == "abi3t") return python.free_threaded;
  if (tagged != python.version) return false;
  return tag.abi == "none" || tag.abi == tag.python + (python.free_threaded ? "t" : "");
}

std::string architecture_of_tag(std::string_view platform) {
  static constexpr std::string_view known[] = {"x86_64",  "aarch64",    "i686",  "armv7l",
                                               "armv6l",  "ppc64le",    "ppc64", "s390x",
                                               "riscv64", "loongarch64"};
  if (platform.starts_with("android_")) {
    if (platform.ends_with("_arm64_v8a")) return "aarch64";
    if (platform.ends_with("_armeabi_v7a")) return "arm";
    return platform.ends_with("_x86") ? "i686" : platform.ends_with("_x86_64") ? "x86_64" : "";
  }
  if (platform.find("linux") == platform.npos) return {};
  for (auto name : known) {
    if (platform.ends_with(name) && platform.size() > name.size()) return std::string(name);
  }
  return {};
}

std::string libc_version_of_tag(std::string_view platform) {
  const auto parts = split(policy_of_tag(platform), '_');
  return parts.size() == 3 ? parts[1] + "." + parts[2] : "";
}

System system_of_tag(std::string_view platform) {
  if (platform == "any") return System::any;
  if (platform.starts_with("manylinux")) return System::glibc;
  if (platform.starts_with("musllinux")) return System::musl;
  if (platform.starts_with("android_")) return System::android;
  return platform.starts_with("linux_") ? System::linux_any_libc : System::other;
}

bool is_linux_or_any(std::string_view platform) {
  const auto system = system_of_tag(platform);
  return system != System::other && system != System::android;
}

bool promises_more(std::string_view a, std::string_view b) {
  const auto left = policy_of_tag(a), right = policy_of_tag(b);
  if (left == right || left == "linux" || right == "any") return false;
  if (left.substr(0, left.find('_')) != right.substr(0, right.find('_')))
    return true;                                    // another libc, or none promised
  if (left.starts_with("musllinux")) return false;  // musl leaves no trace of its version
  return older(left, right);
}

std::vector<std::string> supported_tags(std::string_view minor, const std::string& abi,
                                        const LinuxSystem& system) {
  const auto dot = minor.find('.');
  if (dot == minor.npos) return {};
  const std::string major(minor.substr(0, dot));
  const int newest = number(minor.substr(dot + 1));
  const auto platform_tags = platforms(system);
  std::vector<std::string> tags;
  auto add = [&](const std::string& start) {  // cp311-cp311-
    for (const auto& platform : platform_tags) tags.push_back(start + platform);
  };
  const auto versioned = [&](const char* kind, int number) {
    return kind + major + std::to_string(number);
  };
  const auto own = versioned("cp", newest);
  const auto flags = abi.starts_with(own) ? abi.substr(own.size()) : std::string();
  const bool free_threaded = flags.starts_with('t');
  add(own + "-" + abi + "-");
  // Since Python 3.8, a debug build also takes the usual modules.
  if (flags.ends_with('d') && newest >= 8) add(own + "-" + abi.substr(0, abi.size() - 1) + "-");
  const std::string limited = free_threaded ? "-abi3t-" : "-abi3-";
  add(own + limited);
  add(own + "-none-");
  for (int older = newest - 1; older > 1; --older) add(versioned("cp", older) + limited);
  std::vector<std::string> pure{versioned("py", newest), "py" + major};
  for (int older = newest - 1; older >= 0; --older) pure.push_back(versioned("py", older));
  for (const auto& python : pure) add(python + "-none-");
  tags.push_back(own + "-none-any");
  for (const auto& python : pure) tags.push_back(python + "-none-any");
  return tags;
}

}  // namespace wheelscope
