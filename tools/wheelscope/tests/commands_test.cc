// The commands print what they should and exit with the documented codes.
#include "commands/commands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "fixture.h"
#include "text/text.h"

namespace wheelscope {
namespace {

struct Outcome {
  int code;
  std::string out, err;
};

Outcome run(int (*command)(const Options&, Streams), Options options) {
  std::ostringstream out, err;
  const int code = command(options, {out, err});
  return {code, out.str(), err.str()};
}

std::string written(const std::string& name, const std::string& text) {
  const auto path = temporary_folder() + "/" + name;
  EXPECT_TRUE(write_file(path, text));
  return path;
}

TEST(Show, TellsFactsAsText) {
  const auto outcome = run(show, {.paths = {wheel_path("good")}});
  EXPECT_EQ(outcome.code, clean);
  for (const auto* part : {"pkg 1.0", "manylinux_2_27_x86_64", "4 files verified", "torch >= 2.10",
                           "sm_90a", "compute_90", "RELRO full", "every Python"}) {
    EXPECT_TRUE(has(outcome.out, part)) << part;
  }
  EXPECT_FALSE(has(outcome.out, "\x1b"));
  EXPECT_TRUE(
      has(run(show, {.paths = {wheel_path("good")}, .style = {.colour = true}}).out, "\x1b[1m"));
}

TEST(Show, ReadsEveryFixtureFolder) {
  const auto outcome = run(show, {.paths = {fixture_path("elf"), fixture_path("wheel")}});
  EXPECT_EQ(outcome.code, has_findings) << outcome.err;
  for (const auto* part : {"abi3, Python >= 3.11", "Python 3.11 only", "bound to torch's C++ ABI",
                           "dynamic runtime 13", "executable stack", "debug       .debug_info",
                           "RPATH", "[elf-broken]", "big-endian", "cubin, cuda"}) {
    EXPECT_TRUE(has(outcome.out, part)) << part;
  }
}

TEST(Show, NamesOfMembersCannotCommandTheTerminal) {
  const auto outcome = run(show, {.paths = {wheel_path("escape-in-a-name")}});
  EXPECT_FALSE(has(outcome.out, "\x1b"));
  EXPECT_TRUE(has(outcome.out, "pkg/\\x1b]0;t\\x07.so"));
}

TEST(Text, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\x1b[2J\n"), "a\\x1b[2J\\x0a");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("é€😀"), "é€😀");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "an escape sequence in one character";
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae") << "text from right to left";
  EXPECT_EQ(printable("\xe2\x81\xa6"), "\\xe2\\x81\\xa6");
}

TEST(Show, DrawsTheTableOfLibrariesAndGpus) {
  const auto outcome = run(show, {.paths = {wheel_path("one-library-serves-less")}});
  EXPECT_TRUE(has(outcome.out, "not served 7.5")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "because of pkg/narrow.so"));
  EXPECT_TRUE(has(outcome.out, "pkg/wide.so  sm_75 200 bytes, sm_80 200 bytes"));
  const auto partial = run(show, {.paths = {wheel_path("target-in-some-fatbins")}}).out;
  EXPECT_TRUE(has(partial, "1 of 2 fat binaries of _C.so have no code for it")) << partial;
}

TEST(Show, SumsUpLooseFiles) {
  const auto outcome = run(show, {.paths = {wheel_path("loose-device-code")}});
  EXPECT_TRUE(has(outcome.out, "17 files (cubin, cuda)")) << outcome.out;
  EXPECT_LT(std::ranges::count(outcome.out, '\n'), 60);
}

TEST(Show, AnswersWhatMakesItBig) {
  const auto outcome =
      run(show, {.paths = {wheel_path("one-library-serves-less")}, .by_size = true});
  EXPECT_TRUE(has(outcome.out, "host code               pkg/wide.so")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "sm_90                   pkg/wide.so"));
  EXPECT_TRUE(has(run(show, {.paths = {wheel_path("loose-device-code")}, .by_size = true}).out,
                  "loose files"));
}

TEST(Show, ExitsWith3OnUnreadableInputAndReadsTheRest) {
  const auto outcome =
      run(show, {.paths = {"/nonexistent", wheel_path("good"), fixture_path("zip/truncated.zip")}});
  EXPECT_EQ(outcome.code, unreadable);
  EXPECT_TRUE(has(outcome.out, "pkg 1.0"));
  EXPECT_TRUE(has(outcome.err, "/nonexistent: No such file"));
  EXPECT_TRUE(has(outcome.err, "truncated.zip: no end-of-central-directory"));
  const auto empty = temporary_folder() + "/nothing-here";
  std::filesystem::create_directories(empty);
  EXPECT_EQ(run(show, {.paths = {empty}}).code, unreadable);
}

TEST(Check, PassesAndFails) {
  EXPECT_EQ(run(check, {.paths = {wheel_path("good")}}).code, clean);
  const auto failed = run(check, {.paths = {wheel_path("no-device-code")}});
  EXPECT_EQ(failed.code, has_findings);
  EXPECT_TRUE(has(failed.out, "1 finding") && has(failed.out, "[cuda-code]") &&
              has(failed.out, "fix:"));
}

TEST(Check, FollowsThePolicyFile) {
  const auto policy = written("policy.toml", "torch.abi = ['cxx']\nlevels.torch-abi = 'note'\n");
  const auto noted = run(check, {.paths = {wheel_path("good")}, .policy = policy});
  EXPECT_EQ(noted.code, clean) << "a note is no finding";
  EXPECT_TRUE(has(noted.out, "note [torch-abi]"));
  EXPECT_EQ(
      run(check, {.paths = {wheel_path("good")}, .policy = written("bad.toml", "x.y = 1")}).code,
      usage);
  EXPECT_EQ(run(check, {.paths = {wheel_path("good")}, .policy = "/nonexistent"}).code, unreadable);
}

constexpr const char* matrix =
    "[arch.x86_64]\n[torch.'2.10']\ncuda = ['12.6', 'cpu']\npythons = ['3.10', '3.13t', '3.13']\n";

TEST(Cover, DrawsTheGrid) {
  const auto file = written("matrix.toml", matrix);
  const auto served = run(cover, {.paths = {wheel_path("good")}, .matrix = file});
  EXPECT_EQ(served.code, clean);
  EXPECT_TRUE(has(served.out, "6 of 6 cells served"));
  EXPECT_TRUE(has(served.out, "3.10   3.13   3.13t\n"));
  const auto unserved = run(cover, {.paths = {wheel_path("dynamic-cudart-13")}, .matrix = file});
  EXPECT_EQ(unserved.code, has_findings);
  EXPECT_TRUE(has(unserved.out, "0 of 6 cells served") &&
              has(unserved.out, "it needs libcudart.so.13"));
}

TEST(Cover, EndsAtABadMatrix) {
  EXPECT_EQ(run(cover, {.paths = {wheel_path("good")}, .matrix = written("bad.toml", "x")}).code,
            usage);
  EXPECT_EQ(run(cover, {.paths = {wheel_path("good")}, .matrix = "/nonexistent"}).code, unreadable);
}

TEST(Link, Reports) {
  const auto good = run(link, {.paths = {wheel_path("good"), wheel_path("torch")}});
  EXPECT_EQ(good.code, clean);
  EXPECT_TRUE(has(good.out, "0 missing"));
  const auto bad = run(link, {.paths = {wheel_path("cxx-abi"), wheel_path("torch")}});
  EXPECT_EQ(bad.code, has_findings);
  EXPECT_TRUE(has(bad.out, "missing symbol c10::Error::Error(std::string)"));
  const auto library = run(link, {.paths = {wheel_path("dynamic-cudart-13"), wheel_path("torch")}});
  EXPECT_TRUE(has(library.out, "missing library libcudart.so.13"));
  EXPECT_EQ(run(link, {.paths = {wheel_path("good"), "/nonexistent"}}).code, unreadable);
  EXPECT_EQ(run(link, {.paths = {fixture_path("wheel"), wheel_path("torch")}}).code, unreadable);
}

TEST(Diff, Reports) {
  EXPECT_EQ(run(diff, {.paths = {wheel_path("good"), wheel_path("good")}}).out,
            "no difference for users\n");
  const auto changed = run(diff, {.paths = {wheel_path("good"), wheel_path("no-device-code")}});
  EXPECT_EQ(changed.code, has_findings);
  EXPECT_TRUE(has(changed.out, "SASS\n  - 80, 90a\n"));
  EXPECT_EQ(run(diff, {.paths = {wheel_path("good")}}).code, unreadable);
}

TEST(Dump, ListsSymbolsWithTheirProviders) {
  const auto text = run(dump, {.paths = {wheel_path("good")}, .symbols = true}).out;
  EXPECT_TRUE(has(text, "needed   memcpy@GLIBC_2.17  from libc.so.6\n"));
  EXPECT_TRUE(has(text, "needed   torch_call_dispatcher  from libtorch_cpu.so\n"));
  EXPECT_TRUE(has(text, "defined  my_add\n"));
  EXPECT_TRUE(
      has(run(dump, {.paths = {fixture_path("elf/versions.so")}, .symbols = true}).out, "f@@V_2"));
}

TEST(Dump, ExtractsCode) {
  const auto folder = temporary_folder() + "/extracted";
  EXPECT_EQ(run(dump, {.paths = {wheel_path("good")}, .cubin = true, .output_folder = folder}).code,
            clean);
  EXPECT_EQ(read_text(folder + "/pkg/_C.so.0001.sm_80.cubin")->substr(1, 3), "ELF");
  EXPECT_TRUE(std::filesystem::exists(folder + "/pkg/_C.so.0002.sm_90a.cubin"));
  const auto ptx = run(dump, {.paths = {fixture_path("elf/good.so")}, .ptx = true});
  EXPECT_TRUE(has(ptx.out, "// good.so.0001.compute_90.ptx\n.version 8.4\n"));
  EXPECT_TRUE(has(ptx.err, "1 PTX texts"));
  EXPECT_EQ(run(dump, {.paths = {wheel_path("broken-fatbin")}, .cubin = true}).code, has_findings);
  EXPECT_EQ(run(dump, {.paths = {wheel_path("one-bad-member")}, .cubin = true}).code, has_findings);
  EXPECT_EQ(run(dump, {.paths = {fixture_path("elf/empty-class.so")}, .cubin = true}).code,
            has_findings);
  EXPECT_EQ(
      run(dump, {.paths = {fixture_path("zip/truncated.zip"), "/nonexistent"}, .ptx = true}).code,
      unreadable);
  EXPECT_EQ(
      run(dump, {.paths = {wheel_path("good")}, .ptx = true, .output_folder = "/proc/nowhere"})
          .code,
      unreadable);
}

TEST(Dump, KeepsTheFilesOfSeveralInputsApart) {
  const auto folder = temporary_folder() + "/several";
  const auto good = wheel_path("good"), stored = wheel_path("good-stored"),
             name = good.substr(good.rfind('/') + 1);
  ASSERT_EQ(name, stored.substr(stored.rfind('/') + 1));
  run(dump, {.paths = {good, stored, fixture_path("elf/good.so")},
             .cubin = true,
             .output_folder = folder});
  for (const auto& input :
       {name + "/pkg/_C.so", name + ".2/pkg/_C.so", std::string("good.so/good.so")})
    EXPECT_TRUE(std::filesystem::exists(folder + "/" + input + ".0001.sm_80.cubin")) << input;
}

}  // namespace
}  // namespace wheelscope
