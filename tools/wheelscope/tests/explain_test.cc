// Messages are recognised in every form that programs print them in, and explained with and
// without a machine. Real reports are in reports.toml.
#include "answers/explain.h"

#include <gtest/gtest.h>

#include <sstream>

#include "commands/commands.h"
#include "fixture.h"
#include "report/json.h"
#include "text/text.h"

namespace wheelscope {
namespace {

Symptom only(std::string_view text) {
  const auto found = recognise(text);
  EXPECT_EQ(found.size(), 1U) << text;
  return found.empty() ? Symptom{} : found.front();
}

Explanation explained(std::string_view text, const MachineFacts* machine = nullptr) {
  Disk disk;
  return explain(only(text), machine, disk);
}

bool says(const std::vector<std::string>& sentences, std::string_view part) {
  return joined(sentences, "\n").find(part) != std::string::npos;
}

TEST(Symptom, IsFoundInWhateverStandsAroundIt) {
  const auto symbol = only("[rank0]: ImportError: /a/b.so: undefined symbol: f, version V_1");
  EXPECT_EQ(symbol.library + "|" + symbol.symbol + "|" + symbol.version, "/a/b.so|f|V_1");
  EXPECT_EQ(only("python: symbol lookup error: /a/b.so: undefined symbol: f").library, "/a/b.so");
  EXPECT_EQ(only("Error relocating /a/b.so: f: symbol not found").symbol, "f");
  EXPECT_EQ(only("OSError: 'libx.so.1: cannot open shared object file: No such'").needs,
            "libx.so.1");
  const auto musl =
      only("Error loading shared library libx.so.1: No such file or directory (needed by /a/b.so)");
  EXPECT_EQ(musl.needs + musl.library, "libx.so.1/a/b.so");
  EXPECT_EQ(only("x: version `GLIBC_2.32' not found").version, "GLIBC_2.32");
  EXPECT_EQ(only("driver on your system is too old (found version 12020). Please").cuda, "12.2");
  EXPECT_EQ(only("a.so: wrong ELF class: ELFCLASS32").version, "ELFCLASS32");
  EXPECT_TRUE(recognise("all is well\nundefined behaviour\n").empty());
  EXPECT_TRUE(recognise("").empty());
}

TEST(Symptom, IsToldOnce) {
  const auto found = recognise(
      "GPU X with CUDA capability sm_120 is not compatible with the current PyTorch\n"
      "The current PyTorch install supports CUDA capabilities sm_80 sm_90.\n"
      "CUDA error: no kernel image is available for execution on the device\n"
      "a.so: undefined symbol: f\na.so: undefined symbol: f\nb.so: undefined symbol: f\n");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].capability, "12.0");
  EXPECT_EQ(found[0].supported, (std::vector<std::string>{"80", "90"}));
}

const MachineFacts h200{
    .architecture = "x86_64",
    .libc = "glibc",
    .libc_version = "2.31",
    .driver = "525.60.13",
    .gpus = {{"NVIDIA H200", "9.0"}, {"NVIDIA H200", "9.0"}},
    .python = PythonFacts{.version = "3.11.7", .abi = "cp311"},
    .torch = TorchFacts{.path = "/t", .version = "2.14.0", .cuda = "13.0", .cxx11_abi = true},
    .cuda_libraries = {{"libcudart.so.13", "/c", "nvidia-cuda-runtime", "13.0"}}};

TEST(Explain, SymbolsOfTorch) {
  const auto cxx =
      explained("a.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs", &h200);
  EXPECT_EQ(cxx.provider, "libc10.so");
  EXPECT_TRUE(says(cxx.because, "torch 2.14.0 here uses the other one"));
  EXPECT_TRUE(says(cxx.because, "has no libc10.so"));
  const auto shim = explained("a.so: undefined symbol: torch_stream_native_handle");
  EXPECT_TRUE(says(shim.because, "stable ABI since torch 2.13")) << joined(shim.because);
  EXPECT_TRUE(says(shim.mend, "install torch 2.13 or newer"));
}

TEST(Explain, ComparesWithTheTorchThatIsHere) {
  const auto folder = testing::TempDir() + "/explain-torch";
  std::string library = read_text(fixture_path("elf/c10-before-cxx11.so")).value();
  ASSERT_TRUE(write_file(folder + "/lib/libc10.so", library));
  auto machine = h200;
  machine.torch->path = folder;
  const auto changed = explained("a.so: undefined symbol: _ZN3c105ErrorC1Ei", &machine);
  EXPECT_TRUE(says(changed.because, "does not have it")) << joined(changed.because);
  EXPECT_TRUE(says(changed.because, "here has c10::Error::Error(std::string)"));
  const auto there = explained("a.so: undefined symbol: _ZN3c105ErrorC1ESs", &machine);
  EXPECT_TRUE(says(there.because, "here has it in libc10.so"));
}

TEST(Explain, SymbolsOfOthers) {
  EXPECT_TRUE(says(explained("a.so: undefined symbol: PyObject_GetOptionalAttr", &h200).because,
                   "Python here is 3.11.7"));
  EXPECT_TRUE(says(explained("a.so: undefined symbol: PyType_GetName").because,
                   "limited API since Python 3.11"));
  EXPECT_EQ(explained("a.so: undefined symbol: cuLibraryLoadData", &h200).provider, "libcuda.so.1");
  EXPECT_EQ(explained("a.so: undefined symbol: cudaGraphAddNode_v2").provider, "libcudart");
  EXPECT_EQ(explained("a.so: undefined symbol: cublasLtFoo").provider, "libcublasLt");
  EXPECT_EQ(explained("a.so: undefined symbol: memcpy, version GLIBC_2.14").provider, "libc.so.6");
  EXPECT_EQ(explained("a.so: undefined symbol: _ZSt28__throw_bad_array_new_lengthv").provider,
            "libstdc++.so.6");
  const auto linked = explained("a.so: undefined symbol: f, version libnvJitLink.so.12", &h200);
  EXPECT_TRUE(says(linked.because, "nvidia-nvjitlink-cu12"));
  EXPECT_TRUE(says(explained("a.so: undefined symbol: f").because, "no table here knows"));
}

TEST(Explain, Libraries) {
  auto missing = [](const std::string& name, const MachineFacts* machine = nullptr) {
    return explained("ImportError: " + name + ": cannot open shared object file", machine);
  };
  EXPECT_TRUE(says(missing("libcudart.so.12", &h200).because,
                   "another version: libcudart.so.13 of nvidia-cuda-runtime 13.0"));
  EXPECT_TRUE(says(missing("libcudart.so.13", &h200).mend, "import torch before"));
  EXPECT_EQ(missing("libcudnn.so.9").provider, "nvidia-cudnn-cu12 or nvidia-cudnn-cu13");
  EXPECT_EQ(missing("libcudnn.so.9", &h200).provider, "nvidia-cudnn-cu13");
  EXPECT_TRUE(says(missing("libcudnn.so.9", &h200).mend, "pip install nvidia-cudnn-cu13 in the"));
  EXPECT_EQ(missing("libcuda.so.1").provider, "the NVIDIA driver");
  auto cpu = h200;
  cpu.driver = cpu.torch->cuda = "";
  EXPECT_TRUE(says(missing("libcuda.so.1", &cpu).because, "no driver on this machine"));
  EXPECT_TRUE(says(missing("libtorch_cuda.so", &cpu).mend, "install a CUDA build of torch"));
  cpu.torch.reset();
  EXPECT_TRUE(says(missing("libtorch.so", &cpu).because, "no torch in the environment"));
  EXPECT_EQ(missing("libpython3.9.so.1.0").provider, "Python");
  EXPECT_EQ(missing("libGL.so.1").provider, "the system");
  EXPECT_EQ(missing("libwhoever.so.3").provider, "");
}

TEST(Explain, Versions) {
  const auto glibc = explained("/lib64/libc.so.6: version `GLIBC_2.32' not found", &h200);
  EXPECT_TRUE(says(glibc.because, "glibc here is 2.31"));
  EXPECT_FALSE(says(glibc.because, "another machine"));
  EXPECT_TRUE(
      says(explained("x: version `GLIBC_2.4' not found", &h200).because, "another machine"));
  EXPECT_TRUE(says(explained("x: version `GLIBCXX_3.4.30' not found").mend, "libstdcxx-ng"));
  const auto own = explained(fixture_path("elf/versions.so") + ": version `V_9' not found", &h200);
  EXPECT_TRUE(says(own.because, "here goes up to V_2")) << joined(own.because);
}

TEST(Explain, GpusDriversAndPython) {
  const auto kernel = explained("no kernel image is available", &h200);
  EXPECT_TRUE(says(kernel.because, "compute capability 9.0: H100, H200, GH200"));
  EXPECT_TRUE(says(kernel.mend, "TORCH_CUDA_ARCH_LIST=\"9.0\""));
  const auto served = explained(
      "X with CUDA capability sm_86 is not compatible with the\ninstall supports CUDA capabilities "
      "sm_80.");
  EXPECT_TRUE(says(served.because, "it is another library that lacks it"));
  const auto old = explained("CUDA driver version is insufficient for CUDA runtime version", &h200);
  EXPECT_TRUE(says(old.because, "CUDA 13 needs driver 580.65.06") &&
              says(old.because, "525.60.13"));
  EXPECT_TRUE(says(explained("driver on your system is too old (found version 11040)").mend,
                   "for CUDA 11"));
  EXPECT_TRUE(says(explained("Found no NVIDIA driver on your system", &h200).because, "525.60.13"));
  EXPECT_TRUE(
      says(explained("the provided PTX was compiled with an unsupported toolchain.", &h200).because,
           "compiles PTX up to version 8.0"));
  EXPECT_TRUE(says(explained("a.so: wrong ELF class: ELFCLASS32", &h200).because, "x86_64"));
  EXPECT_TRUE(says(explained("a.so: file too short").mend, "--force-reinstall"));
  EXPECT_TRUE(says(
      explained("dynamic module does not define module export function (PyInit_x)", &h200).because,
      "cp311"));
  EXPECT_EQ(explained("module was compiled for Python 3.10, but the interpreter").what,
            "The module was made for Python 3.10.");
}

TEST(Explain, ReadsTextOrTheStandardInput) {
  std::ostringstream out, err;
  std::istringstream log(std::string(9 << 20, '.') + "\na.so: file too short\n");
  EXPECT_EQ(explain({}, {out, err}, log), clean) << err.str();
  EXPECT_NE(out.str().find("a.so is no whole library"), std::string::npos);
  std::ostringstream json;
  EXPECT_EQ(explain({.paths = {"a.so: file too short"}, .json = true}, {json, err}, log), clean);
  EXPECT_EQ(Json::parse(json.str())["explanations"][0]["kind"], "damaged-file");
  EXPECT_EQ(explain({.paths = {"hello"}, .json = true}, {out, err}, log), has_findings);
  EXPECT_NE(err.str().find("no message that is known here"), std::string::npos);
  EXPECT_EQ(explain({.paths = {"a: file too short"}, .python = "/none"}, {out, err}, log),
            unreadable);
  EXPECT_EQ(explain({.python = "a", .machine = "b"}, {out, err}, log), usage);
}

}  // namespace
}  // namespace wheelscope
