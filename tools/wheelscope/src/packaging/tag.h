// Compatibility tags: cp311-abi3-manylinux_2_28_x86_64 (PEP 425, 600, 656 and 803).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wheelscope {

struct Tag {
  std::string python, abi, platform;
};
// Splits a tag into its three parts; returns an empty tag for any other number.
Tag split_tag(std::string_view tag);

// Expands py2.py3-none-any to py2-none-any and py3-none-any; sorted. Returns none if there would be
// more than a thousand.
std::vector<std::string> expand_tags(std::string_view pythons, std::string_view abis,
                                     std::string_view platforms);

// A version such as 3.14t: 3.14, free-threaded.
struct PythonBuild {
  std::string version;
  bool free_threaded = false;
  explicit PythonBuild(const std::string& text)
      : version(text), free_threaded(text.ends_with('t')) {
    if (free_threaded) version.pop_back();
  }
};

// True if an installer on this CPython takes a wheel with this python and ABI tag.
bool admits(const Tag& tag, const PythonBuild& python);

// Returns "3.10" for "310" or "3_10", "3.9" for "39", "3.14t" for "314t".
std::string python_version_of_tag(std::string_view digits);

// Returns x86_64 for manylinux_2_28_x86_64, aarch64 for android_24_arm64_v8a, "" for any and
// win_amd64.
std::string architecture_of_tag(std::string_view platform);

// Returns the version of the C library that a platform tag asks for: 2.17 for manylinux2014_x86_64,
// "" for others.
std::string libc_version_of_tag(std::string_view platform);

// The system that a platform tag is for.
enum class System { any, linux_any_libc, glibc, musl, android, other };
System system_of_tag(std::string_view platform);
struct LinuxSystem {
  std::string architecture;
  System libc = System::glibc;
  std::string libc_version;  // 2.31; 1.2 for musl
};
bool is_linux_or_any(std::string_view platform);

// True if tag `a` asks for an older system than tag `b`: manylinux_2_17 than manylinux_2_28, any
// manylinux than linux.
bool promises_more(std::string_view a, std::string_view b);

// Returns the tags of the wheels that an installer on a CPython on Linux takes, best first. `minor`
// is 3.11; `abi` is that of the interpreter: cp311, cp314t, cp37m, cp311d. The order is that of
// packaging 26.3, by which pip chooses candidates.
std::vector<std::string> supported_tags(std::string_view minor, const std::string& abi,
                                        const LinuxSystem& system);

}  // namespace wheelscope
