// Made-up environments: what loads, what does not, and why. test_env.py asks the real loader.
#include "answers/environment.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "fixture.h"
#include "packaging/record.h"
#include "report/json.h"
#include "report/text.h"
#include "text/text.h"

namespace wheelscope {
namespace {

namespace fs = std::filesystem;

class Environment {
 public:
  explicit Environment(const std::string& name) : site(fresh_folder("environment-" + name)) {
    machine = {.architecture = "x86_64",
               .libc = "glibc",
               .libc_version = "2.31",
               .python = PythonFacts{.executable = fixture_path("elf/python-program"),
                                     .version = "3.11.9",
                                     .abi = "cp311",
                                     .architecture = "x86_64",
                                     .site_packages = {site}}};
  }
  // Installs fixtures as files of a distribution.
  void install(const std::string& name, const std::map<std::string, std::string>& files,
               const std::string& metadata = "") {
    std::string record;
    for (const auto& [file, fixture] : files) {
      const auto bytes = read_text(fixture_path("elf/" + fixture));
      ASSERT_TRUE(bytes && write_file(site + "/" + file, *bytes)) << fixture;
      record += file + ",,\n";
    }
    ASSERT_TRUE(write_file(site + "/" + name + "-1.0.dist-info/RECORD", record));
    ASSERT_TRUE(write_file(site + "/" + name + "-1.0.dist-info/METADATA", "Name: x\n" + metadata));
  }
  std::map<std::string, DistributionVerdict> judge() const {
    Disk disk;
    std::map<std::string, DistributionVerdict> verdicts;
    for (auto& verdict : judge_environment(machine, disk))
      verdicts.emplace(verdict.distribution.name, verdict);
    return verdicts;
  }
  std::string site;
  MachineFacts machine;
};

TEST(Environment, ImportsTorchBeforeWhatIsBuiltOnIt) {
  Environment made("torch");
  made.install("torch", {{"torch/lib/libtorch_global_deps.so", "torch-deps.so"},
                         {"torch/lib/libc10.so", "c10-before-cxx11.so"},
                         {"torch/_C.so", "torch-module.so"}});
  made.install("pkg", {{"pkg/_C.so", "module-on-torch.so"}});
  EXPECT_EQ(made.judge().at("pkg").loads, Loads::depends) << "torch was not found";
  made.machine.torch = {.path = made.site + "/torch", .version = "2.10.0"};
  made.machine.cuda_libraries = {{"libcudart.so.12", made.site + "/none", "nvidia", "12"}};
  const auto found = made.judge();
  EXPECT_TRUE(found.at("pkg").is_sound());
  EXPECT_TRUE(found.at("torch").is_sound());
}

TEST(Environment, DoubtsLibrariesOfEitherTensorLayout) {
  Environment made("layout");
  made.install("torch", {{"torch/lib/libc10.so", "c10-with-add.so"}});
  const std::map<std::string, std::string> module{{"pkg/_C.so", "module-with-tensors.so"}};
  made.machine.torch = {.path = made.site + "/torch", .version = "2.13.0+cpu"};
  made.install("pkg", module);
  const auto found = made.judge().at("pkg");
  EXPECT_EQ(found.loads, Loads::depends);
  ASSERT_EQ(found.broken.size(), 1U);
  EXPECT_EQ(found.broken[0].trouble, Trouble::torch_layout);
  made.install("pkg", module, "Requires-Dist: torch>=2.13\n");
  EXPECT_TRUE(made.judge().at("pkg").broken.empty()) << "METADATA tells";
}

TEST(Environment, ComparesGpus) {
  Environment made("gpus");
  made.install("first", {{"first/good.so", "good.so"}});
  made.install("nvidia_cufft", {{"nvidia/libcufft.so", "good.so"}});
  made.machine.gpus = {{"T4", "7.5"}, {"T4", "7.5"}, {"H200", "9.0"}, {"unknown", ""}};
  const auto found = made.judge();
  ASSERT_EQ(found.at("first").unserved.size(), 1U);
  EXPECT_EQ(found.at("first").unserved[0].capability, "7.5");
  EXPECT_EQ(to_json(found.at("first"))["unserved"][0]["gpu"], "T4");
  EXPECT_TRUE(has(environment_text({found.at("first")}, {}), "has no code for T4 (7.5)"));
  EXPECT_TRUE(found.at("nvidia-cufft").unserved.empty()) << "NVIDIA's own is not judged";
}

// test_env_files.py deletes, shortens and adds files.
TEST(Environment, ComparesFilesWithRecord) {
  Environment made("record");
  made.install("pkg",
               {{"pkg/_C.so", "module.so"}, {"pkg/libs/libfixture.so.1", "libfixture.so.1"}});
  const auto file = made.site + "/pkg/a b.py", record = made.site + "/pkg-1.0.dist-info/RECORD";
  auto states = [&](const std::string& text) {
    EXPECT_TRUE(write_file(file, text));
    std::string words;
    const auto found = made.judge();
    for (const auto& [state, path] : found.at("pkg").files)
      words += std::string(name_of(state)) + " " + base_name(path) + " ";
    return words;
  };
  const std::string text = "x = 1\n";
  const auto hash = record_hash(std::as_bytes(std::span(text)));
  ASSERT_TRUE(write_file(record, *read_text(record) + "pkg/a b.py," + hash + ",6\n"));
  EXPECT_EQ(states(text), "");
  EXPECT_EQ(states("x = 22\n"), "changed a b.py ");
  EXPECT_TRUE(write_file(file, "x = 2\n"));
  fs::last_write_time(file, fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(made.judge().at("pkg").files.size(), 1U) << "of the same size, later than RECORD";
}

// The same library as the loader, NumPy and Python code see it.
TEST(Environment, ModulesBuiltForAnotherNumpy) {
  Environment made("numpy");
  made.install("old", {{"old/_C.so", "numpy-1.so"}});
  made.install("new", {{"new/_C.so", "numpy-2.so"}});
  made.install("behind",
               {{"behind/_C.so", "numpy-behind.so"}, {"behind/libbehind.so", "libbehind.so"}});
  auto loads = [&](const std::string& version) {
    fs::remove_all(made.site + "/numpy-1.0.dist-info");
    made.install("numpy", {});
    if (version != "1.0")
      fs::rename(made.site + "/numpy-1.0.dist-info",
                 made.site + "/numpy-" + version + ".dist-info");
    const auto found = made.judge();
    fs::remove_all(made.site + "/numpy-" + version + ".dist-info");
    EXPECT_EQ(found.at("behind").loads, version[0] == '2' ? Loads::depends : Loads::yes);
    return std::pair(found.at("old").loads, found.at("new").loads);
  };
  EXPECT_EQ(loads("1.0"), std::pair(Loads::yes, Loads::no)) << "the new one needs 1.23";
  EXPECT_EQ(loads("1.26.4"), std::pair(Loads::yes, Loads::yes));
  EXPECT_EQ(loads("2.3.5"), std::pair(Loads::no, Loads::yes));
}

}  // namespace
}  // namespace wheelscope
