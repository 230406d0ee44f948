// Checks each rule against the real loader: gcc builds tiny libraries, ld.so says where it takes
// them from or what it misses, and ours must say the same.
#include "loader/loader.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fixture.h"
#include "loader/disk.h"
#include "text/text.h"

namespace wheelscope {
namespace {

namespace fs = std::filesystem;

// A folder with the libraries of one test.
class Workshop {
 public:
  explicit Workshop(const std::string& name) : folder_(fresh_folder("loader-" + name)) {}

  // Builds `path` from one line of C, linked only as the flags say.
  void build(const std::string& path, const std::string& code, const std::string& flags = "") {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / (path + ".c")) << code << "\n";
    const bool program = path.find(".so") == path.npos;
    run_or_fail("gcc " + path + ".c -o " + path + (program ? " " : " -shared -fPIC ") +
                "-Wl,--no-as-needed -Wl,--allow-shlib-undefined " + flags);
  }
  void link(const std::string& target, const std::string& name) {
    fs::create_directories((folder_ / name).parent_path());
    fs::create_symlink(target, folder_ / name);
  }

  // Returns what ld.so says of the program's own libraries: name -> path, empty if it finds none.
  std::map<std::string, std::string> real(const std::string& environment = "") {
    std::map<std::string, std::string> found;
    for (const auto& line :
         split(output(environment + " LD_TRACE_LOADED_OBJECTS=1 ./main 2>/dev/null"), '\n')) {
      const auto arrow = line.find(" => ");
      const auto name = std::string(trim(line.substr(0, arrow)));
      if (!name.starts_with("libt_") || arrow == line.npos) continue;
      const auto path = std::string(trim(line.substr(arrow + 4)));
      found[name] = path == "not found" ? "" : normal(path.substr(0, path.find(" (")));
    }
    return found;
  }

  // Returns the same by our rules.
  std::map<std::string, std::string> ours(const std::vector<std::string>& library_path = {}) {
    auto world = disk_.world(machine());
    for (const auto& folder : library_path)
      world.library_path.push_back((folder_ / folder).string());
    Loader loader(std::move(world));
    const auto opening = loader.start((folder_ / "main").string());
    std::map<std::string, std::string> found;
    for (const auto* library : opening.scope) {
      for (const auto& name : library->names) {
        if (name.starts_with("libt_")) found[name] = normal(library->path);
      }
    }
    for (const auto& missing : opening.missing_libraries) found[missing.name] = "";
    return found;
  }

  // Returns the library that defines what `main` (or `library`) wants, by our rules; empty if none.
  std::string binding(const std::string& symbol) {
    Loader loader(disk_.world(machine()));
    const auto opening = loader.start((folder_ / "main").string());
    for (const auto& wanted : opening.root->facts->symbols) {
      if (wanted.name != symbol || wanted.defined) continue;
      const auto bound = loader.bind(wanted, opening);
      return bound.library ? base_name(bound.library->path) : "";
    }
    return "not wanted";
  }

  Opening start(Loader& loader) { return loader.start((folder_ / "main").string()); }

  std::string output(const std::string& command) {
    const auto whole = "cd " + folder_.string() + " && env " + command;
    std::string text;
    std::array<char, 4096> buffer{};
    FILE* pipe = popen(whole.c_str(), "r");
    while (fgets(buffer.data(), buffer.size(), pipe)) text += buffer.data();
    pclose(pipe);
    return text;
  }

  std::string path(const std::string& name) const { return normal((folder_ / name).string()); }
  Disk& disk() { return disk_; }

  static std::string machine() {
    static const auto name = [] {
      Disk disk;
      return disk.open("/proc/self/exe")->machine;
    }();
    return name;
  }

 private:
  std::string normal(const std::string& path) const {
    return (path.starts_with('/') ? fs::path(path) : folder_ / path).lexically_normal().string();
  }
  void run_or_fail(const std::string& command) {
    const auto whole = "cd " + folder_.string() + " && " + command + " 2>&1";
    ASSERT_EQ(std::system(whole.c_str()), 0) << command;
  }

  fs::path folder_;
  Disk disk_;
};

const std::string rpath = " -Wl,--disable-new-dtags,-rpath,";
const std::string runpath = " -Wl,--enable-new-dtags,-rpath,";

void expect_same(Workshop& shop, std::map<std::string, std::string> expected,
                 const std::string& library_path = "") {
  for (auto& [name, path] : expected) path = path.empty() ? "" : shop.path(path);
  const bool none = library_path.empty();
  EXPECT_EQ(shop.real(none ? "" : "LD_LIBRARY_PATH=" + library_path), expected) << "the real one";
  EXPECT_EQ(shop.ours(none ? std::vector<std::string>{} : std::vector{library_path}), expected);
}

// The libraries of a program, with the linker's arguments; a link; and where each is found.
struct Search {
  std::string rule;
  std::vector<std::pair<std::string, std::string>> built;
  std::map<std::string, std::string> found;
  std::string library_path = {}, link = {}, target = {};
};

TEST(Loader, SearchesWhereTheRealOneDoes) {
  const std::string a = "lib/libt_a.so", b = "lib/libt_b.so", needs_a = "-Llib -lt_a",
                    needs_b = "-Llib -lt_b", in_lib = "'$ORIGIN/lib'";
  const Search searches[] = {
      {"RUNPATH is searched", {{a, ""}, {"main", needs_a + runpath + in_lib}}, {{"libt_a.so", a}}},
      {"nothing leads there without a path", {{a, ""}, {"main", needs_a}}, {{"libt_a.so", ""}}},
      {"RPATH is inherited by what a library needs",
       {{b, ""}, {a, needs_b}, {"main", needs_a + rpath + in_lib}},
       {{"libt_a.so", a}, {"libt_b.so", b}}},
      {"RUNPATH is not",
       {{b, ""}, {a, needs_b}, {"main", needs_a + runpath + in_lib}},
       {{"libt_a.so", a}, {"libt_b.so", ""}}},
      {"a library with RUNPATH ignores the RPATH of its loaders",
       {{b, ""}, {a, needs_b + runpath + "/nowhere"}, {"main", needs_a + rpath + in_lib}},
       {{"libt_a.so", a}, {"libt_b.so", ""}}},
      {"RPATH comes before LD_LIBRARY_PATH",
       {{a, ""}, {"other/libt_a.so", ""}, {"main", needs_a + rpath + in_lib}},
       {{"libt_a.so", a}},
       "other"},
      {"RUNPATH comes after it",
       {{a, ""}, {"other/libt_a.so", ""}, {"main", needs_a + runpath + in_lib}},
       {{"libt_a.so", "other/libt_a.so"}},
       "other"},
      {"the origin is the folder of the link, not of its target",
       {{b, ""},
        {a, needs_b + runpath + "'$ORIGIN'"},
        {"main", needs_a + runpath + "'${ORIGIN}/links'"}},
       {{"libt_a.so", "links/libt_a.so"}, {"libt_b.so", ""}},
       "",
       "links/libt_a.so",
       "../lib/libt_a.so"},
      {"a loaded SONAME is not searched again",
       {{b, "-Wl,-soname,libt_b.so"},
        {a, needs_b},
        {"main", "-Llib -lt_b -lt_a" + runpath + in_lib}},
       {{"libt_a.so", a}, {"libt_b.so", b}}},
      {"a file name is no SONAME",
       {{b, "-Wl,-soname,libt_other.so"}, {"main", needs_b + runpath + in_lib}},
       {{"libt_other.so", "lib/libt_other.so"}},
       "",
       "lib/libt_other.so",
       "libt_b.so"}};
  for (const auto& [rule, built, found, library_path, link, target] : searches) {
    SCOPED_TRACE(rule);
    Workshop shop("search");
    for (const auto& [path, flags] : built)
      shop.build(path, path == "main" ? "int main() {}" : "int a;", flags);
    if (!link.empty()) shop.link(target, link);
    expect_same(shop, found, library_path);
  }
}

TEST(Loader, ANeededPathIsTakenAsItIs) {
  Workshop shop("path");
  shop.build("lib/libt_a.so", "int a;");  // without SONAME the path itself is recorded
  shop.build("main", "int main() {}", "./lib/libt_a.so");
  const auto real = shop.output("LD_TRACE_LOADED_OBJECTS=1 ./main");
  EXPECT_TRUE(has(real, "./lib/libt_a.so (0x")) << real;
  Loader loader(shop.disk().world(Workshop::machine()));
  const auto here = fs::current_path();
  fs::current_path(fs::path(shop.path("main")).parent_path());
  EXPECT_TRUE(shop.start(loader).missing_libraries.empty());
  fs::current_path(here);
}

TEST(Loader, AFileOfAnotherMachineIsPassedOver) {
  Workshop shop("other-machine");
  shop.build("lib/libt_a.so", "int a;");
  shop.build("main", "int main() {}", "-Llib -lt_a" + runpath + "'$ORIGIN/bad:$ORIGIN/lib'");
  fs::create_directories(shop.path("bad"));
  fs::copy_file(shop.path("lib/libt_a.so"), shop.path("bad/libt_a.so"));
  std::fstream file(shop.path("bad/libt_a.so"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(18);  // e_machine
  file.put(EM_S390).put(0);
  file.close();
  expect_same(shop, {{"libt_a.so", "lib/libt_a.so"}});
}

TEST(Loader, NoDefaultLibIsSearchedForWhoSaysSo) {
  Workshop shop("nodefaultlib");
  shop.build("lib/libt_a.so", "int a;", "-nostdlib -lm -Wl,-z,nodefaultlib");
  shop.build("main", "int main() {}", "-Llib -lt_a" + runpath + "'$ORIGIN/lib'");
  Loader loader(shop.disk().world(Workshop::machine()));
  std::vector<std::string> missing;
  for (const auto& library : shop.start(loader).missing_libraries) missing.push_back(library.name);
  const auto real = shop.output("LD_TRACE_LOADED_OBJECTS=1 ./main");
  EXPECT_TRUE(has(real, "libm.so.6 => not found")) << real;
  EXPECT_EQ(missing, std::vector<std::string>{"libm.so.6"});
}

TEST(Loader, TheFirstDefinitionInBreadthFirstOrderIsBound) {
  Workshop shop("breadth-first");
  shop.build("lib/libt_deep.so", "int f() { return 3; }");
  shop.build("lib/libt_a.so", "int a;", "-Llib -lt_deep" + runpath + "'$ORIGIN'");
  shop.build("lib/libt_b.so", "int f() { return 2; }");
  shop.build("main", "#include <stdio.h>\nint f(); int main() { printf(\"%d\", f()); }",
             "-Llib -lt_a -lt_b" + runpath + "'$ORIGIN/lib'");
  EXPECT_EQ(shop.output("./main"), "2");
  EXPECT_EQ(shop.binding("f"), "libt_b.so");
}

TEST(Loader, AReferenceGetsItsVersionOrTheDefault) {
  Workshop shop("versions");
  std::ofstream(shop.path("map")) << "V_1 { f; }; V_2 { f; };";
  const std::string both =
      "int f1() { return 1; } int f2() { return 2; }\n"
      "__asm__(\".symver f1, f@V_1\"); __asm__(\".symver f2, f@@V_2\");";
  shop.build("lib/libt_v.so", both, "-Wl,--version-script=map");
  shop.build("main", "#include <stdio.h>\nint f(); int main() { printf(\"%d\", f()); }",
             "-Llib -lt_v" + runpath + "'$ORIGIN/lib'");
  EXPECT_EQ(shop.output("./main"), "2");
  EXPECT_EQ(shop.binding("f"), "libt_v.so");

  // Without V_2 the loader refuses to start.
  std::ofstream(shop.path("map")) << "V_1 { f; };";
  shop.build("lib/libt_v.so", "int f() { return 1; }", "-Wl,--version-script=map");
  const auto refusal = shop.output("./main 2>&1");
  EXPECT_TRUE(has(refusal, "version `V_2' not found")) << refusal;
  Disk fresh;
  Loader loader(fresh.world(Workshop::machine()));
  const auto opening = loader.start(shop.path("main"));
  ASSERT_EQ(opening.missing_versions.size(), 1U);
  EXPECT_EQ(opening.missing_versions[0].version, "V_2");
}

TEST(Loader, AReferenceWithoutVersionGetsTheFirstOrTheDefault) {
  Workshop shop("unversioned-reference");
  shop.build("lib/libt_v.so", "int f() { return 0; }");  // without versions, to link against
  shop.build("main", "#include <stdio.h>\nint f(); int main() { printf(\"%d\", f()); }",
             "-Llib -lt_v" + runpath + "'$ORIGIN/lib'");
  std::ofstream(shop.path("map")) << "V_1 { f; }; V_2 { f; };";
  shop.build("lib/libt_v.so",
             "int f1() { return 1; } int f2() { return 2; }\n"
             "__asm__(\".symver f1, f@V_1\"); __asm__(\".symver f2, f@@V_2\");",
             "-Wl,--version-script=map");
  const auto real = shop.output("LD_BIND_NOW=1 ./main");
  Disk fresh;
  Loader loader(fresh.world(Workshop::machine()));
  const auto opening = loader.start(shop.path("main"));
  const auto bound = loader.bind({.name = "f"}, opening);
  ASSERT_TRUE(bound.symbol);
  EXPECT_EQ(bound.symbol->version, "V_" + real);
}

TEST(Loader, AVersionedReferenceTakesALibraryWithoutVersions) {
  Workshop shop("library-lost-its-versions");
  std::ofstream(shop.path("map")) << "V_1 { f; };";
  shop.build("lib/libt_v.so", "int f() { return 1; }", "-Wl,--version-script=map");
  shop.build("main", "#include <stdio.h>\nint f(); int main() { printf(\"%d\", f()); }",
             "-Llib -lt_v" + runpath + "'$ORIGIN/lib'");
  shop.build("lib/libt_v.so", "int f() { return 7; }");
  EXPECT_EQ(shop.output("./main 2>/dev/null"), "7");
  EXPECT_EQ(shop.binding("f"), "libt_v.so");
}

TEST(Loader, HiddenDefinitionsAndLocalScopesAreNotSeen) {
  Workshop shop("local-scope");
  const std::string user = "int f(); int g() { return f(); }";
  shop.build("lib/libt_user.so", user);  // needs f, but no library that has it
  shop.build("lib/libt_f.so", "int f() { return 1; }");
  shop.build(
      "main",
      "#include <dlfcn.h>\n#include <stdio.h>\nint main() { dlopen(\"lib/libt_f.so\", RTLD_NOW);"
      " puts(dlopen(\"lib/libt_user.so\", RTLD_NOW) ? \"loaded\" : dlerror()); }",
      "-ldl");
  const auto real = shop.output("./main");
  EXPECT_TRUE(has(real, "undefined symbol: f")) << real;
  for (const bool global : {false, true}) {
    Loader loader(shop.disk().world(Workshop::machine()));
    shop.start(loader);
    loader.open(shop.path("lib/libt_f.so"), global);
    const auto opening = loader.open(shop.path("lib/libt_user.so"));
    EXPECT_EQ(loader.bind({.name = "f"}, opening).library != nullptr, global);
  }
}

TEST(Loader, FindsTheSystemsLibrariesAsTheRealOneDoes) {
  Workshop shop("system");
  shop.build("main", "int main() {}", "-lm -lstdc++");
  std::map<std::string, std::string> real, ours;
  for (const auto& line : split(shop.output("LD_TRACE_LOADED_OBJECTS=1 ./main"), '\n')) {
    const auto arrow = line.find(" => "), end = line.find(" (");
    if (arrow != line.npos && end != line.npos)
      real[std::string(trim(line.substr(0, arrow)))] =
          fs::canonical(line.substr(arrow + 4, end - arrow - 4)).string();
  }
  Loader loader(shop.disk().world(Workshop::machine()));
  for (const auto* library : shop.start(loader).scope) {
    if (!library->loader) continue;  // the program
    if (!library->names.front().starts_with("ld-linux"))
      ours[library->names.front()] = fs::canonical(library->path).string();
  }
  EXPECT_EQ(ours, real);
}

TEST(Loader, TellsHowTheSearchWent) {
  Workshop shop("steps");
  shop.build("lib/libt_a.so", "int a;");
  shop.build("main", "int main() {}", "-Llib -lt_a" + runpath + "/nowhere:'$ORIGIN/lib'");
  Loader loader(shop.disk().world(Workshop::machine()));
  const auto opening = shop.start(loader);
  std::vector<SearchStep> steps;
  EXPECT_EQ(fs::path(loader.search("libt_a.so", opening.root, &steps)).lexically_normal(),
            shop.path("lib/libt_a.so"));
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].path, "/nowhere/libt_a.so");
  EXPECT_EQ(steps[0].result, SearchStep::Result::absent);
  EXPECT_EQ(steps[1].result, SearchStep::Result::found);
  EXPECT_TRUE(loader.search("libt_none.so", opening.root).empty());
}

TEST(Loader, ADamagedCacheHasNoEntries) {
  const std::string text =
      "glibc-ld.so.cache1.1 and then nothing that makes sense, for a while .....";
  EXPECT_TRUE(read_loader_cache(Bytes(std::as_bytes(std::span(text))), "x86_64").empty());
  EXPECT_TRUE(read_loader_cache(Bytes(), "x86_64").empty());
}

}  // namespace
}  // namespace wheelscope
