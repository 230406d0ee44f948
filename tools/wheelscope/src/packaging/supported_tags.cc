// Lists tags as the specification of platform compatibility tags orders them.
#include "packaging/tag.h"

#include <charconv>

#include "tables/tables.h"
#include "text/text.h"

namespace wheelscope {
namespace {

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The C library's policies of one architecture, newest first, each old name after its new one.
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
  // A debug build takes the usual modules too, since Python 3.8.
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
