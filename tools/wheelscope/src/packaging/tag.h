// Compatibility tags: cp311-abi3-manylinux_2_28_x86_64 (PEP 425, 600, 656 and 803).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wheelscope {

struct Tag {
  std::string python, abi, platform;
};
// A text of other than three parts gives an empty tag.
Tag split_tag(std::string_view tag);

// py2.py3-none-any -> py2-none-any, py3-none-any; sorted. More than a thousand are none at all.
std::vector<std::string> expand_tags(std::string_view pythons, std::string_view abis,
                                     std::string_view platforms);

// 3.14t -> 3.14, free-threaded.
struct PythonBuild {
  std::string version;
  bool free_threaded = false;
  explicit PythonBuild(const std::string& text)
      : version(text), free_threaded(text.ends_with('t')) {
    if (free_threaded) version.pop_back();
  }
};

// Whether an installer on this CPython takes a wheel with this python and ABI tag.
bool admits(const Tag& tag, const PythonBuild& python);

// "3.10" from "310" or "3_10"; "3.9" from "39"; "3.14t" from "314t".
std::string python_version_of_tag(std::string_view digits);

// manylinux_2_28_x86_64 -> x86_64; android_24_arm64_v8a -> aarch64; any, win_amd64 -> "".
std::string architecture_of_tag(std::string_view platform);

// The C library that a platform tag asks for: 2.17 for manylinux2014_x86_64; "" for others.
std::string libc_version_of_tag(std::string_view platform);

// What system a platform tag is for.
enum class System { any, linux_any_libc, glibc, musl, android, other };
System system_of_tag(std::string_view platform);
struct LinuxSystem {
  std::string architecture;
  System libc = System::glibc;
  std::string libc_version;  // 2.31; 1.2 for musl
};
bool is_linux_or_any(std::string_view platform);

// Whether tag `a` asks for an older system than tag `b`: manylinux_2_17 than manylinux_2_28, any
// manylinux than linux.
bool promises_more(std::string_view a, std::string_view b);

// The tags that an installer on a CPython of a Linux takes wheels for, the best first.
// `minor` is 3.11; `abi` is that of the interpreter: cp311, cp314t, cp37m, cp311d. The order is
// that of packaging 26.3, which pip takes candidates by.
std::vector<std::string> supported_tags(std::string_view minor, const std::string& abi,
                                        const LinuxSystem& system);

}  // namespace wheelscope
