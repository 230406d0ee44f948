// Tests machines other than this one: drivers, GPUs and C libraries, from folders with their files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "fixture.h"
#include "machine/distributions.h"
#include "machine/machine.h"
#include "packaging/tag.h"
#include "source/system.h"

namespace wheelscope {
namespace {

namespace fs = std::filesystem;

// A folder that stands for the root of a machine.
struct Root {
  explicit Root(const std::string& name) : path(fresh_folder("machine-" + name)) {}
  void write(const std::string& file, const std::string& text) const {
    ASSERT_TRUE(write_file(path + file, text));
  }
  std::string path;
};

TEST(Driver, IsNamedByTheKernelModule) {
  const Root open("open"), proprietary("proprietary"), module("module"), none("none");
  open.write("/proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  "
             "(dvs-builder@U22-I3-AF01-10-1)  Sun Jul 27 07:15:02 UTC 2025\n"
             "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n");
  proprietary.write("/proc/driver/nvidia/version",
                    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n");
  module.write("/sys/module/nvidia/version", "550.54.14\n");
  EXPECT_EQ(read_driver_version(open.path, "x86_64"), "580.65.06");
  EXPECT_EQ(read_driver_version(proprietary.path, "x86_64"), "535.104.05");
  EXPECT_EQ(read_driver_version(module.path, "x86_64"), "550.54.14");
  EXPECT_EQ(read_driver_version(none.path, "x86_64"), "");
}

TEST(Driver, IsNamedByItsLibraryWhereTheKernelIsHidden) {
  const Root root("library");
  root.write("/usr/lib/x86_64-linux-gnu/libcuda.so.570.26", "");
  fs::create_symlink("libcuda.so.570.26", root.path + "/usr/lib/x86_64-linux-gnu/libcuda.so.1");
  EXPECT_EQ(read_driver_version(root.path, "x86_64"), "570.26");
  const Root stub("stub");  // a toolkit's libcuda.so.1 says nothing of a driver
  stub.write("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "");
  EXPECT_EQ(read_driver_version(stub.path, "x86_64"), "");
}

TEST(Gpus, AreListedByTheDriversProgram) {
  const auto gpus = parse_gpu_list("NVIDIA H200, 9.0\nTesla, with a comma, 7.5\nold, [N/A]\n\n");
  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_EQ(gpus[0].name + "/" + gpus[0].capability, "NVIDIA H200/9.0");
  EXPECT_EQ(gpus[1].name + "/" + gpus[1].capability, "Tesla, with a comma/7.5");
  EXPECT_EQ(gpus[2].capability, "");
}

TEST(Gpus, HaveNamesAmongTheKernelsFiles) {
  const Root root("gpus");
  root.write("/proc/driver/nvidia/gpus/0000:17:00.0/information",
             "Model: \t\t NVIDIA H200\nIRQ:   \t\t 255\nGPU UUID: \t GPU-0\n");
  const auto gpus = read_gpu_names(root.path);
  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_EQ(gpus[0].name, "NVIDIA H200");
  EXPECT_EQ(gpus[0].capability, "");
  EXPECT_TRUE(read_gpu_names("/nonexistent").empty());
}

TEST(Libc, IsReadFromItsOwnFile) {
  const Root glibc("glibc"), musl("musl"), none("no-libc");
  glibc.write("/lib/x86_64-linux-gnu/libc.so.6",
              std::string("...\0GNU C Library (Ubuntu GLIBC 2.39-0ubuntu8) stable release version "
                          "2.39.\nCopyright",
                          90));
  musl.write("/lib/ld-musl-x86_64.so.1", std::string("x1.0.0\0y\0001.2.5\0z", 18));
  MachineFacts machine{.architecture = "x86_64"};
  read_libc(glibc.path, "", machine);
  EXPECT_EQ(machine.libc + machine.libc_version, "glibc2.39");
  read_libc(musl.path, "", machine);
  EXPECT_EQ(machine.libc + machine.libc_version, "musl1.2.5");
  EXPECT_TRUE(machine.notes.empty());
  // A program for musl on a machine with both.
  glibc.write("/lib/ld-musl-x86_64.so.1", std::string("\0001.2.3\0", 7));
  read_libc(glibc.path, "/lib/ld-musl-x86_64.so.1", machine);
  EXPECT_EQ(machine.libc + machine.libc_version, "musl1.2.3");
  read_libc(none.path, "", machine);
  EXPECT_EQ(machine.libc, "");
  EXPECT_EQ(machine.notes.size(), 1U);
}

TEST(Programs, AreRunWithoutAShellAndNotWaitedForWithoutEnd) {
  EXPECT_EQ(output_of({find_program("echo"), "a b", "$HOME"}, 10).value(), "a b $HOME\n");
  EXPECT_TRUE(has(output_of({"/bin/false"}, 10).error().what, "exit code 1"));
  EXPECT_FALSE(output_of({"/nonexistent"}, 10));
  EXPECT_FALSE(output_of({find_program("yes")}, 10)) << "prints without end";
  const auto slow = output_of({find_program("sleep"), "60"}, 1);
  ASSERT_FALSE(slow);
  EXPECT_TRUE(has(slow.error().what, "did not answer within 1 seconds"));
  EXPECT_EQ(find_program("no-such-program"), "");
}

TEST(Tags, OfOtherMachines) {
  const auto musl = supported_tags("3.12", "cp312", {"aarch64", System::musl, "1.2.5"});
  EXPECT_EQ(musl[0], "cp312-cp312-linux_aarch64");
  EXPECT_EQ(musl[1], "cp312-cp312-musllinux_1_2_aarch64");
  EXPECT_EQ(musl[3], "cp312-cp312-musllinux_1_0_aarch64");
  EXPECT_EQ(musl[4], "cp312-abi3-linux_aarch64");
  const auto threads = supported_tags("3.15", "cp315t", {"x86_64", System::glibc, "2.39"});
  auto has = [&](const char* tag) { return std::ranges::find(threads, tag) != threads.end(); };
  EXPECT_TRUE(has("cp315-cp315t-manylinux2014_x86_64") && has("cp314-abi3t-linux_x86_64"));
  EXPECT_FALSE(has("cp315-abi3-linux_x86_64") || has("cp315-cp315-linux_x86_64"));
  const auto debug = supported_tags("3.11", "cp311d", {"x86_64", System::glibc, "2.17"});
  EXPECT_TRUE(std::ranges::find(debug, "cp311-cp311-manylinux_2_17_x86_64") != debug.end());
  EXPECT_TRUE(supported_tags("3", "cp3", {"x86_64", System::glibc, "2.17"}).empty());
}

TEST(Distributions, AreTheFirstOnThePath) {
  const Root first("first"), second("second");
  first.write("/Foo_Bar-1.0.dist-info/RECORD",
              "foo/_C.so,,\nfoo/x.py,,\n../../lib/libfoo.so.12.1,,\n");
  first.write("/broken.dist-info/RECORD", "");
  second.write("/foo_bar-2.0.dist-info/RECORD", "");
  second.write("/other-0.1.dist-info/METADATA", "");
  const auto found = list_distributions({first.path, "/nonexistent", second.path});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name + found[0].version, "foo-bar1.0");
  EXPECT_EQ(shared_libraries_of(found[0]).size(), 2U);
  EXPECT_TRUE(shared_libraries_of(found[1]).empty());
}

TEST(Torch, IsReadFromItsFiles) {
  const Root site("site");
  EXPECT_FALSE(find_torch({site.path}));
  site.write("/torch/version.py",
             "__version__ = '2.5.1+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = '6.2'\n");
  site.write("/torch/lib/libcudart-1a2b3c4d.so.12", "");
  site.write("/nvidia_nccl_cu12-2.27.5.dist-info/RECORD",
             "nvidia/nccl/lib/libnccl.so.2,,\nnvidia/__init__.py,,\n");
  const auto torch = find_torch({site.path});
  ASSERT_TRUE(torch);
  EXPECT_EQ(torch->version, "2.5.1+cpu");
  EXPECT_EQ(torch->cuda, "");
  EXPECT_EQ(torch->rocm, "6.2");
  EXPECT_FALSE(torch->cxx11_abi) << "there is no libc10.so to tell it";
  site.write("/torch/lib/libc10.so", read_text(fixture_path("elf/c10-before-cxx11.so")).value());
  EXPECT_EQ(find_torch({site.path})->cxx11_abi, false);
  const auto libraries = find_cuda_libraries({site.path}, torch);
  ASSERT_EQ(libraries.size(), 2U);
  EXPECT_EQ(libraries[0].distribution, "torch");
  EXPECT_EQ(libraries[1].name + " " + libraries[1].version, "libnccl.so.2 2.27.5");
}

// A folder like one of a Python 3.11: its interpreter is any ELF file that asks for libpython.
class Interpreters {
 public:
  explicit Interpreters(const std::string& name) : root(name) { add("/base", "python3.11"); }

  void add(const std::string& base, const std::string& name) const {
    const auto program = read_text(fixture_path("elf/python-program")).value();
    root.write(base + "/bin/" + name, program + std::string("\0003.11.9\0", 8));
    fs::permissions(root.path + base + "/bin/" + name, fs::perms::all);
    root.write(base + "/lib/python3.11/os.py", "");
    fs::create_directories(root.path + base + "/lib/python3.11/site-packages");
  }
  std::string path(const std::string& file) const { return root.path + file; }
  Root root;
};

TEST(Interpreter, IsReadFromItsFolder) {
  const Interpreters files("interpreter");
  const auto found = read_interpreter(files.path("/base/bin/python3.11")).value().facts;
  EXPECT_EQ(found.version, "3.11.9");
  EXPECT_EQ(found.abi, "cp311") << "by its version: there is no _sysconfigdata";
  EXPECT_EQ(found.base_prefix, fs::canonical(files.path("/base")));
  EXPECT_EQ(found.site_packages.back(), files.path("/base/lib/python3.11/site-packages"));
  files.root.write("/base/lib/python3.11/_sysconfigdata__linux_.py",
                   "build_time_vars = {'SOABI': 'cpython-311d-x86_64-linux-gnu'}");
  files.root.write("/base/include/python3.11/patchlevel.h", "#define PY_VERSION \"3.11.10\"\n");
  const auto richer = read_interpreter(files.path("/base/bin/python3.11")).value().facts;
  EXPECT_EQ(richer.abi + richer.version, "cp311d3.11.10");
  fs::remove(files.path("/base/lib/python3.11/os.py"));
  EXPECT_FALSE(read_interpreter(files.path("/base/bin/python3.11")));
  EXPECT_FALSE(read_interpreter(fixture_path("elf/good.so"))) << "runs no Python";
  EXPECT_FALSE(read_interpreter("/nonexistent"));
}

TEST(Interpreter, BehindAShimOfPyenvIsTheChosenOne) {
  const Interpreters files("pyenv");
  for (const auto* version : {"3.11.2", "3.11.10", "3.12.0"})
    files.add("/versions/" + std::string(version), "python3");
  files.root.write("/shims/python3", "#!/bin/sh\nexport PYENV_ROOT=\"" + files.path("") + "\"\n");
  fs::permissions(files.path("/shims/python3"), fs::perms::all);
  auto chosen = [&](const char* version) {
    setenv("PYENV_VERSION", version, 1);
    const auto found = find_interpreter(files.path("/shims/python3"));
    unsetenv("PYENV_VERSION");
    return found ? *found : found.error().what;
  };
  EXPECT_EQ(chosen("3.12.0"), files.path("/versions/3.12.0/bin/python3"));
  EXPECT_EQ(chosen("3.11"), files.path("/versions/3.11.10/bin/python3")) << "the newest 3.11";
  EXPECT_EQ(chosen("2.7:3.11.2"), files.path("/versions/3.11.2/bin/python3"));
  EXPECT_TRUE(has(chosen("3.9"), "pyenv has no python3 in the versions chosen here (3.9)"));
  EXPECT_EQ(chosen("system").find(files.path("")), std::string::npos);
  const auto folder = fs::current_path();
  fs::create_directories(files.path("/project/inner"));
  files.root.write("/project/.python-version", "3.11.2  # for now\n");
  files.root.write("/version", "3.12.0\n");
  fs::current_path(files.path("/project/inner"));
  EXPECT_EQ(chosen(""), files.path("/versions/3.11.2/bin/python3"));
  fs::remove(files.path("/project/.python-version"));
  EXPECT_EQ(chosen(""), files.path("/versions/3.12.0/bin/python3"));
  fs::current_path(folder);
}

TEST(Machine, RefusesWhatIsNone) {
  for (const auto& [text, message] : std::map<std::string, std::string>{
           {"x", "no JSON"},
           {"[]", "it is no object"},
           {R"({"schema_version": "2"})", "schema_version is no number"},
           {R"({"schema_version": 3, "machine": {}})", "schema_version is not 2"},
           {R"({"schema_version": 2, "machine": {"architecture": 1}})", "is no text"},
           {R"({"schema_version": 2, "machine": {"architecture": "", "libc": null,
                "libc_version": null, "driver": null, "gpus": {}}})",
            "machine.gpus is no list"}}) {
    const auto found = parse_machine(text);
    ASSERT_FALSE(found) << text;
    EXPECT_TRUE(has(found.error().what, message)) << found.error().what;
  }
}

}  // namespace
}  // namespace wheelscope
