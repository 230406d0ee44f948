// Messages are recognised in every form that programs print them in, and explained with and
// without a machine. reports.toml and messages.toml have what is said of them.
#include "answers/explain.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
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

// Returns all that an explanation says.
std::string said(const Explanation& explanation) {
  return joined({explanation.what, explanation.owner, joined(explanation.because, "\n"),
                 joined(explanation.fixes, "\n")},
                "\n");
}

std::string explained(std::string_view text, const MachineFacts* machine = nullptr) {
  Disk disk;
  return said(explain(only(text), machine, disk));
}

// A text, and parts of what is said of it; one behind a ! must not be.
using Saying = std::pair<std::string, std::vector<std::string>>;

void expect_said(const std::vector<Saying>& sayings, const MachineFacts* machine = nullptr) {
  for (const auto& [text, parts] : sayings) {
    const auto answer = explained(text, machine);
    for (const auto& part : parts) {
      const bool wanted = !part.starts_with('!');
      EXPECT_EQ(has(answer, part.substr(wanted ? 0 : 1)), wanted) << part << " in\n" << answer;
    }
  }
}

// A text with one symptom, the name of a part of it (or "kind"), and its value.
struct Part {
  std::string text, name, value;
};

void expect_parts(const std::vector<Part>& expected) {
  for (const auto& [text, name, value] : expected) {
    const auto symptom = only(text);
    EXPECT_EQ(name == "kind" ? symptom.kind : symptom.part(name), value) << text;
  }
}

void expect_none(const std::vector<std::string>& texts) {
  for (const auto& text : texts) EXPECT_TRUE(recognise(text).empty()) << text;
}

TEST(Symptom, IsFoundInWhateverStandsAroundIt) {
  const std::string rank = "[rank0]: ImportError: /a/b.so: undefined symbol: f, version V_1";
  const std::string musl =
      "Error loading shared library libx.so.1: No such file or directory (needed by /a/b.so)";
  expect_parts({
      {rank, "library", "/a/b.so"},
      {rank, "symbol", "f"},
      {rank, "version", "V_1"},
      {"python: symbol lookup error: /a/b.so: undefined symbol: f", "library", "/a/b.so"},
      {"Error relocating /a/b.so: f: symbol not found", "symbol", "f"},
      {"OSError: 'libx.so.1: cannot open shared object file: No such'", "needs", "libx.so.1"},
      {R"(ImportError("/a/b.so: undefined symbol: f\n"))", "symbol", "f"},
      {"fatal error: THC/THC.h: Datei oder Verzeichnis nicht gefunden", "kind", "torch-older-api"},
      {musl, "needs", "libx.so.1"},
      {musl, "library", "/a/b.so"},
      {"x: version `GLIBC_2.32' not found", "version", "GLIBC_2.32"},
      {"/my clone/x.so: version `V_9' not found", "needs", "/my clone/x.so"},
      {"ImportError: /my clone/the lib/x.so: version `V_9' not found", "needs",
       "/my clone/the lib/x.so"},
      {"/bin/a b: their/x.so: version `V_9' not found", "needs", "their/x.so"},
      {"python: /my clone/a.so: /lib/x.so: version `V_9' not found", "needs", "/lib/x.so"},
      {"a.so.1: cannot open shared object file: Permission denied", "kind", "file-not-readable"},
      {"cannot import name 'cached_download' from 'huggingface_hub' (unknown location)", "kind",
       "name-from-package"},
      {"a.so: wrong ELF class: ELFCLASS32", "class", "32"},
      {"AttributeError: module ‘numpy’ has no attribute ‘f’", "name", "f"},
      {"'/a/b.so: undefined symbol: free_it'If you do not plan", "symbol", "free_it"},
      {"ImportError:libimf.so: cannot open shared object file: No such file", "needs", "libimf.so"},
  });
  expect_none({"all is well\nundefined behaviour\n", ""});
}

TEST(Symptom, IsToldOnce) {
  const auto found = recognise(
      "GPU X with CUDA capability sm_120 is not compatible with the current PyTorch\n"
      "The current PyTorch install supports CUDA capabilities sm_80 sm_90.\n"
      "CUDA error: no kernel image is available for execution on the device\n"
      "a.so: undefined symbol: f\na.so: undefined symbol: f\nb.so: undefined symbol: f\n");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].part("capability"), "sm_120");
  EXPECT_EQ(found[0].part("supported"), "sm_80 sm_90");
}

TEST(Symptom, WrappedFramedAndColouredTextIsTheSameMessage) {
  for (const auto* text :
       {"PyTorch and torchvision were compiled with different\nCUDA major versions. PyTorch has "
        "CUDA\nVersion=12.1 and torchvision has CUDA Version=11.8. Please",
        "│ \x1b[31mPyTorch and torchvision\x1b[0m were  compiled with different CUDA versions. "
        "pytorch HAS CUDA Version=12.1 and torchvision has CUDA Version=11.8."})
    expect_parts(
        {{text, "kind", "torchvision-cuda"}, {text, "torch", "12.1"}, {text, "other", "11.8"}});
}

TEST(Symptom, OfTwoBeginningsTheNearerOneCounts) {
  const std::string symbol =
      "    self._handle = _dlopen(self._name, mode)\nOSError: dlopen(/a/b.so, 6): Symbol not "
      "found: _f";
  expect_parts({{symbol, "library", "/a/b.so"},
                {symbol, "symbol", "f"},
                {"numpy.random: numpy.dtype size changed, may indicate binary incompatibility",
                 "type", "dtype"}});
}

TEST(Symptom, APatternIsOfWholeWordsAndLines) {
  expect_parts({
      {"ERROR: Failed building wheel for safetensors", "kind", "rust-package"},
      {"ERROR: Failed building wheel for orjson", "kind", "rust-package"},
      {"ERROR: Failed building wheel for orjson-of-others", "kind", "build-failed"},
      {"The term 'uv' is not recognized as the name of a cmdlet", "program", "uv"},
      {"a.cu:1: fatal error: my_cuda.h: No such file or directory", "header", "my_cuda.h"},
      {"ImportError: libGL.so.1: cannot open shared object file", "kind", "missing-opengl"},
      {R"("log": "step 1\nCUDA error: invalid device ordinal")", "kind", "invalid-device"},
      {"epoch 1\nKilled\n$", "kind", "installation-killed"},
  });
  expect_none({"The term 'a longer text' is not recognized as the name",
               "Error 8041: the disk is slow", "RuntimeError: Expected a number",
               "the process was killed"});
}

TEST(Symptom, CompilersSpeakOtherLanguages) {
  expect_parts({
      {"a.cpp:4:10: 致命错误：libavcodec/avcodec.h：没有那个文件或目录", "header",
       "libavcodec/avcodec.h"},
      {"fatal error C1083: 无法打开包括文件: “Python.h”: No such file", "kind", "python-headers"},
      {"/usr/bin/ld: 找不到 -lcudart", "lib", "cudart"},
      {"'nvcc' 不是内部或外部命令，也不是可运行的程序", "program", "nvcc"},
      {"ImportError: DLL load failed: Das angegebene Modul wurde nicht gefunden.", "kind",
       "windows-dll-missing"},
  });
}

TEST(Symptom, SpecialEntriesAndStrongOnesWin) {
  const std::string warning = "UserWarning: pkg_resources is deprecated as an API.\n";
  expect_parts({
      {"libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent", "kind", "mkl-jit-symbol"},
      {"x.c:1: fatal error: Python.h: No such file or directory\nerror: command 'gcc' failed with "
       "exit status 1\nFailed building wheel for x",
       "kind", "python-headers"},
      {"Failed building wheel for x", "package", "x"},
      {warning, "kind", "pkg-resources-deprecated"},
      {warning + "TypeError: f() got an unexpected keyword argument 'x'", "kind",
       "arguments-not-known"},
      {warning + "make: *** [all] Error 2", "kind", "ninja"},
      {"terminate called without an active exception\nmake: *** [all] Error 134", "kind",
       "aborted"},
  });
}

TEST(Symptom, SourceCodeIsNoMessage) {
  expect_parts(
      {{"  err.strerror += f' Error loading \"{dll}\" or one of its dependencies.'\n"
        "OSError: [WinError 126] The specified module could not be found. "
        "Error loading \"C:\\a.dll\" or one of its dependencies.",
        "needs", "C:\\a.dll"}});
  expect_none({"raise ImportError(f\"No module named '{name}'\")"});
}

TEST(Symptom, TheEndMayBeCutOff) {
  EXPECT_EQ(only("ERROR: line\nOSError: [Errno 122] Disk quota excee").message,
            "OSError: [Errno 122] Disk quota excee");
  expect_parts({
      {"ERROR: line\nOSError: [Errno 122] Disk quota excee", "kind", "no-space"},
      {"ImportError: libx.so.1: cannot open shared object fi...", "needs", "libx.so.1"},
      {"x.c:1: fatal error: Python.h: No such file or dir", "kind", "python-headers"},
      {"OSError: [Errno 28] No sp", "kind", "no-space"},
  });
  expect_none({"Disk quota", "c++: error: unrecognized command line opti",
               "OSError: [Errno 2] No such file or director"});
}

TEST(Symptom, HostileTextTakesTimeInProportion) {
  std::string text;
  while (text.size() < 4 << 20) text += "undefined symbol: undefined symbol version `version `' ";
  text += "\xff\xfe\x1b[\x1b[31";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_LE(recognise(text).size(), 100U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  for (const auto* odd : {"\n\n", " ", "\x1b[", ": undefined symbol: ", "undefined symbol:"})
    (void)recognise(odd);
}

// Returns the parts that the sentences of an entry name.
std::set<std::string> named_in(std::string_view text) {
  std::set<std::string> names;
  for (auto open = text.find('{'); open != text.npos; open = text.find('{', open + 1))
    names.emplace(text.substr(open + 1, text.find_first_of("|}", open) - open - 1));
  return names;
}

TEST(MessageEntries, NameKnownParts) {
  for (const auto& entry : message_entries()) {
    std::set<std::string> parts{
        "wanted",       "loaded",  // of the questions symbol and version
        "of",           "pip",        "apt",          "brew",    // of provider
        "tool",                                                  // of provider, for a program
        "python3",      "newer_pip",                             // of wheel
        "distribution", "brought",    "removed",      "change",  // of release
        "over",                                                  // of conflict
        "its_python",   "its_pip",    "sudo",         "musl",    // of the whole text
        "library",                                               // of the lines about it
        "windows",      "macos",      "linux",                   // of the whole text
        "other_torch",  "other_cuda", "other_python", "same",    // of built-for
        "possible",     "impossible"};                           // of python-range
    for (const auto& pattern : entry.find) {
      EXPECT_FALSE(pattern.literals.empty()) << entry.kind;
      EXPECT_EQ(pattern.between.size(), pattern.literals.size() + 1) << entry.kind;
      for (const auto& literal : pattern.literals) EXPECT_FALSE(literal.empty()) << entry.kind;
      for (const auto& name : pattern.between)
        parts.insert(name.substr(0, name.find_first_of("!:")));
    }
    auto sentences = entry.because;
    sentences.insert(sentences.end(), entry.fix.begin(), entry.fix.end());
    sentences.insert(sentences.end(), entry.windows.begin(), entry.windows.end());
    sentences.push_back(entry.what);
    for (const auto& sentence : sentences) {
      for (auto name : named_in(sentence)) {
        name.erase(0, name.starts_with('!') ? 1 : 0);
        EXPECT_TRUE(parts.contains(name.substr(0, name.find('?'))) || name.starts_with(" "))
            << entry.kind << ": " << name;
      }
    }
  }
}

// A sentence is left out if a part that it names is empty: `what` must not be.
TEST(MessageEntries, AlwaysSayWhat) {
  Disk disk;
  for (const auto& entry : message_entries()) {
    for (const auto& pattern : entry.find) {
      Symptom symptom{.kind = entry.kind};
      for (const auto& name : pattern.between)
        symptom.set(name.substr(0, name.find_first_of("!:")), "x");
      if (entry.released) {
        for (const auto* name : {"module", "name", "distribution", "brought", "change"})
          symptom.set(name, "x");
      }
      EXPECT_FALSE(explain(symptom, Asked{.disk = disk}).what.empty())
          << entry.kind << ": " << pattern.literals.front();
    }
  }
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

TEST(Explain, ComparesWithTheTorchThatIsHere) {
  const auto folder = temporary_folder() + "/explain-torch";
  std::string library = read_text(fixture_path("elf/c10-before-cxx11.so")).value();
  ASSERT_TRUE(write_file(folder + "/lib/libc10.so", library));
  auto machine = h200;
  machine.torch->path = folder;
  expect_said(
      {{"a.so: undefined symbol: _ZN3c105ErrorC1Ei",
        {"does not have it", "the installed torch 2.14.0 has c10::Error::Error(std::string)"}},
       {"a.so: undefined symbol: _ZN3c105ErrorC1ESs",
        {"the installed torch 2.14.0 has it in libc10.so"}},
       {fixture_path("elf/versions.so") + ": version `V_9' not found",
        {"on this machine provides versions up to V_2"}}},
      &machine);
}

TEST(Explain, WhoWantsWhat) {
  const std::vector<std::string> over_torch{"over torch.", "you ask for torch==2.1.0",
                                            "0.17.0 needs torch==2.2.0"};
  expect_said({
      {"The conflict is caused by:\n    The user requested torch==2.1.0\n"
       "    torchvision 0.17.0 depends on torch==2.2.0\n\nTo fix this you could try to:",
       over_torch},
      {"No solution found when resolving dependencies:\n  Because torchvision==0.17.0 depends on\n"
       "      torch==2.2.0 and you require torch==2.1.0, we can conclude that",
       over_torch},
      {"LibMambaUnsatisfiableError: Encountered problems while solving:\n"
       "├─ pytorch-cuda ==12.1 ha16c6d3_5 is requested and can be installed;\n"
       "├─ pin on python 3.12.* =* * is installable and it requires\n"
       "│  └─ python =3.12 *, which can be installed;\n"
       "└─ torchvision 0.15.2  is not installable because there are no viable options\n"
       "   ├─ torchvision 0.15.2 would require\n"
       "   │  └─ pytorch-cuda 11.7.* , which conflicts with any installable versions previously\n"
       "   └─ torchvision 0.15.2 would require\n"
       "      └─ python >=3.10,<3.11.0a0 *, which conflicts with any installable versions\n",
       {"agrees on python and pytorch-cuda.",
        "you ask for pytorch-cuda==12.1 ha16c6d3_5; torchvision 0.15.2 needs pytorch-cuda 11.7.*",
        "torchvision 0.15.2 needs python>=3.10,<3.11.0a0"}},
  });
}

TEST(Explain, TheTextTellsWhosePythonItIs) {
  EXPECT_EQ(facts_of_text("/python3.11/x.py /python3.12/y.py").at("its_python"), "");
  EXPECT_EQ(facts_of_text("c:\\python310\\lib\\x.py").at("its_python"), "3.10");
  EXPECT_NE(facts_of_text("c:\\python310\\lib\\x.py").at("windows"), "");
  EXPECT_NE(facts_of_text("/users/me/lib/x.py").at("macos"), "");
  EXPECT_EQ(facts_of_text("/home/me/x.py: /mnt/c/tools/nvcc.exe").at("windows"), "");
  EXPECT_EQ(facts_of_text("/home/me/x.py: ...-macosx-11_0_arm64.whl").at("macos"), "");
}

TEST(Explain, AdviceIsForTheSystemOfTheMessage) {
  EXPECT_EQ(for_system("apt install a, dnf install b; macOS: brew install a; then c", "linux"),
            "apt install a, dnf install b");
  EXPECT_EQ(for_system("apt install a, dnf install b; macOS: brew install a; then c", "macos"),
            "macOS: brew install a; then c");
  EXPECT_EQ(for_system("pip install a; or apt install a, brew install a", "macos"),
            "pip install a; brew install a");
  EXPECT_EQ(for_system("apt install a, apk add b; pip install c", "musl"),
            "apk add b; pip install c");
  EXPECT_EQ(for_system("apt install a; pip install c", "musl"), "apt install a; pip install c");
  EXPECT_EQ(for_system("install it: apt install a, apk add b; c", "linux"),
            "install it: apt install a; c");
  EXPECT_EQ(for_system("Windows: a; b", "linux"), "");
  EXPECT_EQ(for_system("a; on macOS, b", "linux"), "a");
  EXPECT_EQ(for_system("on Windows, a; on Linux and in containers: b", "linux"),
            "on Linux and in containers: b");
  EXPECT_EQ(for_system("on Windows and macOS: a", "macos"), "on Windows and macOS: a");
  EXPECT_EQ(for_system("Linux and macOS: a", "macos"), "Linux and macOS: a");
}

TEST(Explain, OneAdviceForManyNames) {
  Disk disk;
  auto all = [&](std::string_view text) {
    return explain_all(recognise(text), Asked{.disk = disk});
  };
  const auto one =
      all("ld: cannot find -l_a.cpython-36m-x86_64-linux-gnu\n"
          "ld: cannot find -l_b.cpython-36m-x86_64-linux-gnu\n"
          "ld: cannot find -l_c.cpython-36m-x86_64-linux-gnu\n");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one.front().because.front(), "the same is true of _b, _c");
  EXPECT_EQ(all("ld: cannot find -lfoo\nld: cannot find -lssl").size(), 2U);
}

TEST(Explain, MessagesOfAnotherMachineAreTold) {
  const auto elsewhere = [](std::string_view text) {
    return is_of_another_machine(
        text, MachineFacts{.architecture = "x86_64", .python = PythonFacts{.version = "3.11.7"}});
  };
  EXPECT_TRUE(elsewhere("File \"C:\\a\\b.py\": No module named 'torch'"));
  EXPECT_TRUE(elsewhere("dyld: Library not loaded: libx.dylib"));
  EXPECT_TRUE(elsewhere("/usr/lib/aarch64-linux-gnu/libgomp.so.1: cannot allocate memory"));
  EXPECT_TRUE(elsewhere("no wheel (Python 3.8)"));
  EXPECT_TRUE(elsewhere("ImportError:/home/nobody-here/a.so: undefined symbol: f"));
  EXPECT_TRUE(elsewhere("/opt/none/lib/python3.11/site-packages/a.so: undefined symbol: f"));
  EXPECT_FALSE(elsewhere("No module named 'torch'"));
  EXPECT_FALSE(elsewhere("/pytorch/c10/cuda/CUDAFunctions.cpp:109: CUDA error"));
}

TEST(Explain, ReadsTextOrTheStandardInput) {
  std::ostringstream out, err;
  std::istringstream log(std::string(9 << 20, '.') + "\na.so: file too short\n");
  EXPECT_EQ(explain({}, {out, err}, log), clean) << err.str();
  EXPECT_TRUE(has(out.str(), "a.so is incomplete")) << out.str();
  std::ostringstream json;
  EXPECT_EQ(explain({.paths = {"a.so: file too short"}, .json = true}, {json, err}, log), clean);
  EXPECT_EQ(Json::parse(json.str())["explanations"][0]["kind"], "damaged-file");
  EXPECT_EQ(explain({.paths = {"hello"}, .json = true}, {out, err}, log), has_findings);
  EXPECT_TRUE(has(err.str(), "no known message"));
  EXPECT_EQ(explain({.paths = {"a: file too short"}, .python = "/none"}, {out, err}, log),
            unreadable);
  EXPECT_EQ(explain({.python = "a", .machine = "b"}, {out, err}, log), usage);
}

}  // namespace
}  // namespace wheelscope
