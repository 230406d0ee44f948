// Messages are recognised in every form that programs print them in, and explained with and
// without a machine. Real reports are in reports.toml.
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
  EXPECT_EQ(only(R"(ImportError("/a/b.so: undefined symbol: f\n"))").symbol, "f");
  EXPECT_EQ(only("fatal error: THC/THC.h: Datei oder Verzeichnis nicht gefunden").kind,
            "torch-older-api");
  const auto musl =
      only("Error loading shared library libx.so.1: No such file or directory (needed by /a/b.so)");
  EXPECT_EQ(musl.needs + musl.library, "libx.so.1/a/b.so");
  EXPECT_EQ(only("x: version `GLIBC_2.32' not found").version, "GLIBC_2.32");
  EXPECT_EQ(only("a.so: wrong ELF class: ELFCLASS32").part("class"), "32");
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
  EXPECT_EQ(found[0].part("capability"), "sm_120");
  EXPECT_EQ(found[0].part("supported"), "sm_80 sm_90");
}

TEST(Symptom, WrappedFramedAndColouredTextIsTheSameMessage) {
  for (const auto* text :
       {"PyTorch and torchvision were compiled with different\nCUDA major versions. PyTorch has "
        "CUDA\nVersion=12.1 and torchvision has CUDA Version=11.8. Please",
        "│ \x1b[31mPyTorch and torchvision\x1b[0m were  compiled with different CUDA versions. "
        "pytorch HAS CUDA Version=12.1 and torchvision has CUDA Version=11.8."}) {
    const auto found = only(text);
    EXPECT_EQ(found.kind + found.part("torch") + found.part("other"), "torchvision-cuda12.111.8");
  }
  EXPECT_EQ(only("AttributeError: module ‘numpy’ has no attribute ‘f’").part("name"), "f");
}

TEST(Symptom, OfTwoBeginningsTheNearerOneCounts) {
  const auto symbol = only(
      "    self._handle = _dlopen(self._name, mode)\nOSError: dlopen(/a/b.so, 6): Symbol not "
      "found: _f");
  EXPECT_EQ(symbol.library + "|" + symbol.symbol, "/a/b.so|f");
  EXPECT_EQ(only("numpy.random: numpy.dtype size changed, may indicate binary incompatibility")
                .part("type"),
            "dtype");
}

TEST(Symptom, EntriesNameAlternatives) {
  EXPECT_EQ(only("ERROR: Failed building wheel for safetensors").kind, "rust-package");
  EXPECT_EQ(only("ERROR: Failed building wheel for orjson").kind, "rust-package");
  EXPECT_EQ(only("ERROR: Failed building wheel for orjson-of-others").kind, "build-failed");
}

TEST(Symptom, APartMayBeOneWordAlone) {
  EXPECT_EQ(only("The term 'uv' is not recognized as the name of a cmdlet").part("program"), "uv");
  EXPECT_TRUE(recognise("The term 'a longer text' is not recognized as the name").empty());
}

TEST(Symptom, CompilersSpeakOtherLanguages) {
  EXPECT_EQ(only("a.cpp:4:10: 致命错误：libavcodec/avcodec.h：没有那个文件或目录").part("header"),
            "libavcodec/avcodec.h");
  EXPECT_EQ(only("fatal error C1083: 无法打开包括文件: “Python.h”: No such file").kind,
            "python-headers");
  EXPECT_EQ(only("/usr/bin/ld: 找不到 -lcudart").part("library"), "cudart");
  EXPECT_EQ(only("'nvcc' 不是内部或外部命令，也不是可运行的程序").part("program"), "nvcc");
  EXPECT_EQ(only("ImportError: DLL load failed: Das angegebene Modul wurde nicht gefunden.").kind,
            "windows-dll-missing");
}

TEST(Symptom, AQuoteEndsAWord) {
  EXPECT_EQ(only("'/a/b.so: undefined symbol: free_it'If you do not plan").symbol, "free_it");
}

TEST(Symptom, AnErrorsNameMayTouchTheFile) {
  EXPECT_EQ(only("ImportError:libimf.so: cannot open shared object file: No such file").needs,
            "libimf.so");
}

TEST(Symptom, ALineMayBeOneWord) {
  EXPECT_EQ(only("epoch 1\nKilled\n$").kind, "installation-killed");
  EXPECT_TRUE(recognise("the process was killed").empty());
}

TEST(Symptom, SpecialEntriesAndStrongOnesWin) {
  EXPECT_EQ(only("libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent").kind, "mkl-jit-symbol");
  EXPECT_EQ(only("x.c:1: fatal error: Python.h: No such file or directory\nerror: command 'gcc' "
                 "failed with exit status 1\nFailed building wheel for x")
                .kind,
            "python-headers");
  EXPECT_EQ(only("Failed building wheel for x").part("package"), "x");
}

TEST(Symptom, WarningsAndPlacesComeAfterReasons) {
  const std::string warning = "UserWarning: pkg_resources is deprecated as an API.\n";
  EXPECT_EQ(only(warning).kind, "pkg-resources-deprecated");
  EXPECT_EQ(only(warning + "TypeError: f() got an unexpected keyword argument 'x'").kind,
            "arguments-not-known");
  EXPECT_EQ(only(warning + "make: *** [all] Error 2").kind, "ninja");
  EXPECT_EQ(only("terminate called without an active exception\nmake: *** [all] Error 134").kind,
            "aborted");
}

TEST(Symptom, SourceCodeIsNoMessage) {
  EXPECT_EQ(only("  err.strerror += f' Error loading \"{dll}\" or one of its dependencies.'\n"
                 "OSError: [WinError 126] The specified module could not be found. "
                 "Error loading \"C:\\a.dll\" or one of its dependencies.")
                .needs,
            "C:\\a.dll");
  EXPECT_TRUE(recognise("raise ImportError(f\"No module named '{name}'\")").empty());
}

TEST(Symptom, TheEndMayBeCutOff) {
  const auto cut = only("ERROR: line\nOSError: [Errno 122] Disk quota excee");
  EXPECT_EQ(cut.kind + "|" + cut.message, "no-space|OSError: [Errno 122] Disk quota excee");
  EXPECT_EQ(only("ImportError: libx.so.1: cannot open shared object fi...").needs, "libx.so.1");
  EXPECT_EQ(only("x.c:1: fatal error: Python.h: No such file or dir").kind, "python-headers");
  EXPECT_EQ(only("OSError: [Errno 28] No sp").kind, "no-space");
  EXPECT_TRUE(recognise("Disk quota").empty());
  EXPECT_TRUE(recognise("c++: error: unrecognized command line opti").empty());
  EXPECT_TRUE(recognise("OSError: [Errno 2] No such file or director").empty());
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
        "wanted",       "loaded",                          // of the questions symbol and version
        "of",           "pip",       "apt",     "brew",    // of provider
        "python3",      "newer_pip",                       // of wheel
        "distribution", "brought",   "removed", "change",  // of release
        "over",                                            // of conflict
        "its_python",   "its_pip",   "sudo",    "musl",    // of the whole text
        "possible",     "impossible"};                     // of python-range
    for (const auto& pattern : entry.find) {
      EXPECT_FALSE(pattern.literals.empty()) << entry.kind;
      EXPECT_EQ(pattern.between.size(), pattern.literals.size() + 1) << entry.kind;
      for (const auto& literal : pattern.literals) EXPECT_FALSE(literal.empty()) << entry.kind;
      for (const auto& name : pattern.between) parts.insert(name.substr(0, name.find('!')));
    }
    auto sentences = entry.because;
    sentences.insert(sentences.end(), entry.fix.begin(), entry.fix.end());
    sentences.insert(sentences.end(), entry.windows.begin(), entry.windows.end());
    sentences.push_back(entry.what);
    for (const auto& sentence : sentences) {
      for (const auto& name : named_in(sentence))
        EXPECT_TRUE(parts.contains(name.substr(0, name.find('?'))) || name.starts_with(" "))
            << entry.kind << ": " << name;
    }
  }
}

// A sentence is left out if a part that it names is empty: `what` must not be.
TEST(MessageEntries, AlwaysSayWhat) {
  Disk disk;
  for (const auto& entry : message_entries()) {
    for (const auto& pattern : entry.find) {
      Symptom symptom{.kind = entry.kind};
      for (const auto& name : pattern.between) symptom.set(name.substr(0, name.find('!')), "x");
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

TEST(Explain, SymbolsOfTorch) {
  const auto cxx =
      explained("a.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs", &h200);
  EXPECT_EQ(cxx.owner, "libc10.so");
  EXPECT_TRUE(says(cxx.because, "torch 2.14.0 here uses the other one"));
  EXPECT_TRUE(says(cxx.because, "has no libc10.so"));
  const auto shim = explained("a.so: undefined symbol: torch_stream_native_handle");
  EXPECT_TRUE(says(shim.because, "stable ABI since torch 2.13")) << joined(shim.because);
  EXPECT_TRUE(says(shim.fixes, "install torch 2.13 or newer"));
}

TEST(Explain, ComparesWithTheTorchThatIsHere) {
  const auto folder = temporary_folder() + "/explain-torch";
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

TEST(Explain, WhatNoPythonFulfils) {
  const auto range = [](const std::string& wanted) {
    return explained("ERROR: Package 'x' requires a different Python: 3.8.10 not in '" + wanted +
                     "'");
  };
  EXPECT_TRUE(says(range("==2.7,>=3.7").because, "no Python fulfils ==2.7,>=3.7"));
  EXPECT_FALSE(says(range("==2.7,>=3.7").fixes, "uv venv"));
  EXPECT_FALSE(says(range("<4.0,>=3.10").because, "no Python"));
  EXPECT_TRUE(says(range("<4.0,>=3.10").fixes, "uv venv"));
}

TEST(Explain, ReleasesThatHaveAName) {
  const auto newer =
      explained("AttributeError: module 'torch.library' has no attribute 'custom_op'");
  EXPECT_EQ(newer.symptom.kind, "name-of-release");
  EXPECT_TRUE(says({newer.what}, "torch has it since 2.4")) << newer.what;
  EXPECT_TRUE(says(newer.fixes, "'torch>=2.4'"));
  const auto older = explained(
      "ImportError: cannot import name 'cached_download' from 'huggingface_hub' (/x/__init__.py)");
  EXPECT_TRUE(says({older.what}, "huggingface-hub 0.26 removed it")) << older.what;
  EXPECT_TRUE(says(older.fixes, "'huggingface-hub<0.26'"));
  EXPECT_EQ(
      only("cannot import name 'cached_download' from 'huggingface_hub' (unknown location)").kind,
      "name-from-package");
  EXPECT_TRUE(
      says({explained("ModuleNotFoundError: No module named 'transformers.models.qwen3'").what},
           "4.51"));
}

TEST(Explain, WhoWantsWhat) {
  for (const auto* text :
       {"The conflict is caused by:\n    The user requested torch==2.1.0\n"
        "    torchvision 0.17.0 depends on torch==2.2.0\n\nTo fix this you could try to:",
        "No solution found when resolving dependencies:\n  Because torchvision==0.17.0 depends on\n"
        "      torch==2.2.0 and you require torch==2.1.0, we can conclude that"}) {
    const auto conflict = explained(text);
    EXPECT_TRUE(says({conflict.what}, "over torch.")) << conflict.what;
    EXPECT_TRUE(says(conflict.because, "you ask for torch==2.1.0")) << joined(conflict.because);
    EXPECT_TRUE(says(conflict.because, "0.17.0 needs torch==2.2.0"));
  }
  EXPECT_TRUE(
      says(explained("xformers 0.0.22 requires torch==2.0.1, but you have torch 2.3.0 which "
                     "is incompatible.")
               .because,
           "torch: xformers 0.0.22 needs torch==2.0.1; torch 2.3.0 is installed"));
}

TEST(Explain, TheTextTellsWhoseMessageItIs) {
  const auto old = explained(
      "pip 18.1 from /usr/lib/python3/dist-packages/pip (python 3.7)\n"
      "x-1.0-cp37-cp37m-manylinux_2_24_x86_64.whl is not a supported wheel on this platform.");
  EXPECT_TRUE(says(old.because, "pip 18.1 does not know")) << joined(old.because);
  EXPECT_TRUE(
      says(explained("$ sudo python3 setup.py install\nerror: can't find Rust compiler").fixes,
           "without sudo"));
  EXPECT_EQ(facts_of_text("/python3.11/x.py /python3.12/y.py").at("its_python"), "");
  EXPECT_EQ(facts_of_text("c:\\python310\\lib\\x.py").at("its_python"), "3.10");
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

TEST(Explain, WindowsHasItsOwnAdvice) {
  const auto headers =
      explained("fatal error C1083: Cannot open include file: 'Python.h': No such file");
  EXPECT_TRUE(says(headers.fixes, "python.org"));
  EXPECT_FALSE(says(headers.fixes, "apt"));
  EXPECT_TRUE(says(explained("x.c:1: fatal error: Python.h: No such file").fixes, "apt"));
}

TEST(Explain, SymbolsOfOthers) {
  EXPECT_TRUE(says(explained("a.so: undefined symbol: PyObject_GetOptionalAttr", &h200).because,
                   "Python here is 3.11.7"));
  EXPECT_TRUE(says(explained("a.so: undefined symbol: PyType_GetName").because,
                   "limited API since Python 3.11"));
  EXPECT_EQ(explained("a.so: undefined symbol: cuLibraryLoadData", &h200).owner, "libcuda.so.1");
  EXPECT_EQ(explained("a.so: undefined symbol: cudaGraphAddNode_v2").owner, "libcudart");
  EXPECT_EQ(explained("a.so: undefined symbol: cublasLtFoo").owner, "libcublasLt");
  EXPECT_EQ(explained("a.so: undefined symbol: memcpy, version GLIBC_2.14").owner, "libc.so.6");
  EXPECT_EQ(explained("a.so: undefined symbol: _ZSt28__throw_bad_array_new_lengthv").owner,
            "libstdc++.so.6");
  const auto arrow = explained("a.so: undefined symbol: _ZN5arrowlsERSoRKNS_10Decimal256E");
  EXPECT_EQ(arrow.owner, "Apache Arrow (libarrow)");
  EXPECT_TRUE(says(arrow.because, "another version of it was found"));
  EXPECT_EQ(explained("a.so: undefined symbol: _ZTIN2cv9ExceptionE").owner, "OpenCV");
  EXPECT_EQ(explained("a.so: undefined symbol: H5Fopen").owner, "HDF5");
  EXPECT_EQ(explained("a.so: undefined symbol: _Z5arrowv").owner, "");
  const auto linked = explained("a.so: undefined symbol: f, version libnvJitLink.so.12", &h200);
  EXPECT_TRUE(says(linked.because, "nvidia-nvjitlink-cu12"));
  EXPECT_TRUE(says(explained("a.so: undefined symbol: f").because, "is the package's own"));
  EXPECT_EQ(explained("a.so: undefined symbol: _ZNK2at10TensorBase4nameEv").owner,
            "libtorch_cpu.so");
  EXPECT_TRUE(says(explained("Error relocating /a.so: backtrace: symbol not found").fixes,
                   "musllinux wheel"));
  EXPECT_TRUE(says(explained("Error relocating /a.so: _ZNSt6vector: symbol not found").fixes,
                   "apk add libstdc++"));
}

TEST(Explain, Libraries) {
  auto missing = [](const std::string& name, const MachineFacts* machine = nullptr) {
    return explained("ImportError: " + name + ": cannot open shared object file", machine);
  };
  EXPECT_TRUE(says(missing("libcudart.so.12", &h200).because,
                   "another version: libcudart.so.13 of nvidia-cuda-runtime 13.0"));
  EXPECT_TRUE(says(missing("libcudart.so.13", &h200).fixes, "import torch before"));
  EXPECT_EQ(missing("libcudnn.so.9").owner, "nvidia-cudnn-cu12 or nvidia-cudnn-cu13");
  EXPECT_EQ(missing("libcudnn.so.9", &h200).owner, "nvidia-cudnn-cu13");
  EXPECT_TRUE(says(missing("libcudnn.so.9", &h200).fixes, "pip install nvidia-cudnn-cu13 in the"));
  EXPECT_EQ(missing("libcuda.so.1").owner, "the NVIDIA driver");
  EXPECT_EQ(missing("libcuda.so").owner, "the NVIDIA driver");
  auto cpu = h200;
  cpu.driver = cpu.torch->cuda = "";
  EXPECT_TRUE(says(missing("libcuda.so.1", &cpu).because, "no driver on this machine"));
  EXPECT_TRUE(says(missing("libtorch_cuda.so", &cpu).fixes, "install a CUDA build of torch"));
  cpu.torch.reset();
  EXPECT_TRUE(says(missing("libtorch.so", &cpu).because, "no torch in the environment"));
  EXPECT_EQ(missing("libpython3.9.so.1.0").owner, "Python");
  EXPECT_EQ(missing("libz.so.1").owner, "the system");
  EXPECT_EQ(missing("libwhoever.so.3").owner, "");
  EXPECT_EQ(missing("libcublasLt.so.11").owner, "nvidia-cublas-cu11");
  EXPECT_TRUE(says(missing("libcudart.so.11.0", &h200).because, "it is part of CUDA 11"));
  EXPECT_EQ(missing("libcudnn_ops_infer.so.8").owner, "nvidia-cudnn-cu12<9");
  EXPECT_EQ(missing("libcudart.so.10.1").owner, "CUDA 10.1");
  EXPECT_TRUE(says(missing("/x/libown.so").because, "no file at that path"));
  EXPECT_TRUE(says(missing("libc.musl-x86_64.so.1").because, "made for musl"));
  const auto glibc = explained(
      "Error loading shared library ld-linux-x86-64.so.2: No such file or directory (needed by x)");
  EXPECT_TRUE(says(glibc.fixes, "musllinux wheel") && !says(glibc.fixes, "apt-file"));
  const auto denied = explained("a.so.1: cannot open shared object file: Permission denied");
  EXPECT_TRUE(denied.symptom.kind == "file-not-readable" && !says(denied.fixes, "install"));
}

TEST(Explain, WhoseANameIs) {
  const auto module = explained("No module named 'cv2'");
  EXPECT_EQ(module.owner, "OpenCV");
  EXPECT_TRUE(says(module.fixes, "pip install opencv-python"));
  EXPECT_TRUE(says(explained("fatal error: 'openssl/ssl.h' file not found").fixes,
                   "apt install libssl-dev"));
  EXPECT_TRUE(says(explained("bash: ffmpeg: command not found").fixes, "apt install ffmpeg"));
  EXPECT_TRUE(says(explained("OSError: libpq.so.5: cannot open shared object file").fixes,
                   "apt install libpq5"));
  EXPECT_TRUE(says(explained("OSError: cannot load library 'portaudio'").fixes, "libportaudio2"));
  const auto unknown = explained("fatal error: whose.h: No such file or directory");
  EXPECT_TRUE(unknown.owner.empty() && says(unknown.fixes, "apt-file search whose.h"));
  EXPECT_FALSE(says(unknown.fixes, "apt install"));
}

TEST(Explain, WhoseCopyOfACxxLibraryWasLoaded) {
  auto fix = [](const std::string& folder) {
    return explained(folder + "libstdc++.so.6: version `GLIBCXX_3.4.29' not found").fixes.front();
  };
  EXPECT_NE(fix("/lib64/").find("conda install"), std::string::npos);
  EXPECT_NE(fix("/opt/gcc/10/lib64/").find("unset LD_LIBRARY_PATH"), std::string::npos);
  EXPECT_NE(fix("/home/me/miniconda3/lib/").find("libstdcxx-ng"), std::string::npos);
  EXPECT_TRUE(says(explained("/nix/store/a-gcc/lib/libstdc++.so.6: version `CXXABI_1.3.15' not "
                             "found")
                       .fixes,
                   "programs.nix-ld"));
}

TEST(Explain, CondasBaseIsNoEnvironment) {
  const auto base = explained(
      "ImportError: /u/anaconda3/bin/../lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found "
      "(required by /u/anaconda3/envs/e/lib/python3.9/site-packages/a.so)");
  EXPECT_TRUE(says(base.because, "conda's base"));
  EXPECT_TRUE(says(base.fixes, "LD_LIBRARY_PATH=$CONDA_PREFIX/lib"));
}

TEST(Explain, SizesOfMemory) {
  auto because = [](const std::string& sizes) {
    return explained("CUDA out of memory. Tried to allocate " + sizes).because;
  };
  EXPECT_TRUE(says(because("1.69 GiB (GPU 0; 14.56 GiB total capacity; 649.97 MiB already "
                           "allocated; 1.31 GiB free; 1.01 GiB reserved in total by PyTorch)"),
                   "12.2 GiB are held by other processes"));
  EXPECT_TRUE(says(because("20.00 MiB (GPU 0; 23.69 GiB total capacity; 2.10 GiB already "
                           "allocated; 21.00 GiB free; 2.20 GiB reserved in total by PyTorch)"),
                   "20 MiB were asked for: the memory was there"));
  EXPECT_TRUE(says(because("80.00 GiB (GPU 0; 23.69 GiB total capacity; 2.10 GiB already "
                           "allocated; 1.00 GiB free; 2.20 GiB reserved in total by PyTorch)"),
                   "no setting helps"));
  EXPECT_TRUE(says(because("2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.00 GiB "
                           "is free. Of the allocated memory 18.00 GiB is allocated by PyTorch, "
                           "and 4.00 GiB is reserved by PyTorch but unallocated."),
                   "4.0 GiB of it are reserved and unused"));
}

TEST(Explain, WhatAPackageWasBuiltFor) {
  auto because = [](const std::string& built, const std::string& here) {
    return explained("xFormers was built for:\n    PyTorch " + built +
                     " with CUDA 1201 (you have " + here + ")")
        .because;
  };
  EXPECT_TRUE(says(because("2.1.2+cu121", "2.0.1+cu118"), "2.1.2 and 2.0.1 differ"));
  EXPECT_TRUE(says(because("2.0.1+cu121", "2.0.1+cu118"), "the CUDA differs: cu121 and cu118"));
  EXPECT_TRUE(says(because("2.0.1+cu118", "2.0.1+cu118"), "that is the torch that is here"));
}

TEST(Explain, LibrariesThatTorchItselfNeeds) {
  const auto torch = explained(
      "    from torch._C import *\nImportError: libarm_compute.so: cannot open shared object file");
  EXPECT_TRUE(says(torch.because, "torch's wheel should bring it"));
  EXPECT_FALSE(says(torch.fixes, "apt-file"));
}

TEST(Explain, Versions) {
  const auto glibc = explained("/lib64/libc.so.6: version `GLIBC_2.32' not found", &h200);
  EXPECT_TRUE(says(glibc.because, "glibc here is 2.31"));
  EXPECT_FALSE(says(glibc.because, "another machine"));
  EXPECT_TRUE(
      says(explained("x: version `GLIBC_2.4' not found", &h200).because, "another machine"));
  EXPECT_TRUE(says(explained("x: version `GLIBCXX_3.4.30' not found").fixes, "libstdcxx-ng"));
  const auto own = explained(fixture_path("elf/versions.so") + ": version `V_9' not found", &h200);
  EXPECT_TRUE(says(own.because, "here goes up to V_2")) << joined(own.because);
  auto needs = [](const std::string& message) {
    return explained(message + ": version `V_9' not found").symptom.needs;
  };
  EXPECT_EQ(needs("ImportError: /my clone/the lib/x.so"), "/my clone/the lib/x.so");
  EXPECT_EQ(needs("/my clone/x.so"), "/my clone/x.so");
  EXPECT_EQ(needs("/bin/a b: their/x.so"), "their/x.so");
  EXPECT_EQ(needs("python: /my clone/a.so: /lib/x.so"), "/lib/x.so");
}

TEST(Explain, GpusDriversAndPython) {
  const auto kernel = explained("no kernel image is available", &h200);
  EXPECT_TRUE(says(kernel.because, "compute capability 9.0: H100, H200, GH200"));
  EXPECT_TRUE(says(kernel.fixes, "TORCH_CUDA_ARCH_LIST=\"9.0\""));
  const auto served = explained(
      "X with CUDA capability sm_86 is not compatible with the\ninstall supports CUDA capabilities "
      "sm_80.");
  EXPECT_TRUE(says(served.because, "it is another library that lacks it"));
  const auto old = explained("CUDA driver version is insufficient for CUDA runtime version", &h200);
  EXPECT_TRUE(says(old.because, "CUDA 13 needs driver 580.65.06") &&
              says(old.because, "525.60.13"));
  EXPECT_TRUE(says(explained("driver on your system is too old (found version 11040)").fixes,
                   "for CUDA 11"));
  EXPECT_TRUE(says(explained("Found no NVIDIA driver on your system", &h200).because, "525.60.13"));
  EXPECT_TRUE(
      says(explained("the provided PTX was compiled with an unsupported toolchain.", &h200).because,
           "compiles PTX up to version 8.0"));
  EXPECT_TRUE(says(explained("a.so: wrong ELF class: ELFCLASS32", &h200).because, "x86_64"));
  EXPECT_TRUE(says(explained("a.so: file too short").fixes, "--force-reinstall"));
  EXPECT_TRUE(says(
      explained("dynamic module does not define module export function (PyInit_x)", &h200).because,
      "cp311"));
  EXPECT_EQ(explained("module was compiled for Python 3.10, but the interpreter").what,
            "The module was made for Python 3.10.");
}

TEST(Explain, WhatTheTagsOfAWheelAskFor) {
  auto tags = [](const std::string& tag) {
    return explained("a-1-" + tag + ".whl is not a supported wheel on this platform").because;
  };
  EXPECT_TRUE(says(tags("cp310-cp310-manylinux_2_28_x86_64"),
                   "CPython 3.10 alone, and for Linux on x86_64 with glibc 2.28 or newer"));
  EXPECT_TRUE(says(tags("cp38-abi3-manylinux2014_aarch64"),
                   "CPython 3.8 or newer, and for Linux on aarch64 with glibc 2.17 or newer"));
  EXPECT_TRUE(says(tags("cp314-cp314t-musllinux_1_2_x86_64"),
                   "CPython 3.14 alone, free-threaded, and for Linux on x86_64 with musl"));
  EXPECT_TRUE(says(tags("cp310-cp310-manylinux_2_28_x86_64.manylinux_2_27_x86_64"),
                   "for Linux on x86_64 with glibc 2.27 or newer"));
  EXPECT_FALSE(says(tags("cp310-cp310-manylinux_2_28_x86_64.manylinux_2_27_x86_64"), "2.28"));
  EXPECT_TRUE(
      says(explained("a-1-py3-none-any.whl is not a supported wheel on this platform").fixes,
           "python3 -m pip install a-1-py3-none-any.whl"));
  EXPECT_TRUE(says(tags("py3-none-win_amd64"), "Python 3, and for Windows with a 64-bit Python"));
  EXPECT_TRUE(says(tags("cp312-cp312-macosx_11_0_arm64"), "macOS 11.0 or newer on arm64"));
}

TEST(Explain, ReadsTextOrTheStandardInput) {
  std::ostringstream out, err;
  std::istringstream log(std::string(9 << 20, '.') + "\na.so: file too short\n");
  EXPECT_EQ(explain({}, {out, err}, log), clean) << err.str();
  EXPECT_NE(out.str().find("a.so is no whole library"), std::string::npos) << out.str();
  std::ostringstream json;
  EXPECT_EQ(explain({.paths = {"a.so: file too short"}, .json = true}, {json, err}, log), clean);
  EXPECT_EQ(Json::parse(json.str())["explanations"][0]["kind"], "damaged-file");
  EXPECT_EQ(explain({.paths = {"hello"}, .json = true}, {out, err}, log), has_findings);
  EXPECT_NE(err.str().find("no known message"), std::string::npos);
  EXPECT_EQ(explain({.paths = {"a: file too short"}, .python = "/none"}, {out, err}, log),
            unreadable);
  EXPECT_EQ(explain({.python = "a", .machine = "b"}, {out, err}, log), usage);
}

}  // namespace
}  // namespace wheelscope
