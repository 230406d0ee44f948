// What Python files import and open, by their text. test_env_imports.py asks Python itself.
#include "machine/python_source.h"

#include <gtest/gtest.h>

#include "machine/openings.h"

namespace wheelscope {
namespace {

using Words = std::vector<std::string>;

// Each import as `dots + module: names`, with a question mark if it is optional.
Words imports_of(std::string_view text, PythonReading reading) {
  Words found;
  for (const auto& one : read_python_source(text, reading).imports) {
    auto word = std::string(one.dots, '.') + one.module + (one.optional ? "?" : "");
    for (const auto& name : one.names) word += " " + name;
    found.push_back(word);
  }
  return found;
}

// They are the same, whatever else is read.
Words imports_of(std::string_view text) {
  auto found = imports_of(text, PythonReading::all);
  EXPECT_EQ(imports_of(text, PythonReading::imports), found) << text;
  return found;
}

TEST(PythonSource, ReadsImportStatements) {
  EXPECT_EQ(imports_of("import a.b as c, d\nfrom . import e\nfrom ..f import (\n  g as h,  # why\n"
                       "  i,\n)\nfrom j import \\\n  k; import l\n"),
            (Words{"a.b", "d", ". e", "..f g i", "j k", "l"}));
  EXPECT_EQ(imports_of("from a import *"), Words{"a"});
  EXPECT_EQ(imports_of("'''\nimport a\n'''\n# import b\nx = 'import c'\n"), Words{});
}

TEST(PythonSource, BearsWhatPythonWouldRefuse) {
  EXPECT_EQ(imports_of("except ImportError:\n  import a\nelse:\n  import b\n"), (Words{"a", "b"}));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "try:";
  EXPECT_EQ(imports_of(deep + "import a"), Words{});
  EXPECT_EQ(imports_of("x; " + deep + "; import a\n"), Words{"a"});
}

TEST(PythonSource, KnowsWhatRuns) {
  EXPECT_EQ(imports_of("def f():\n  import a\nclass C:\n  import b\nasync def g():\n  import c\n"),
            Words{"b"});
  EXPECT_EQ(imports_of("if TYPE_CHECKING:\n  import a\nelse:\n  import b\n"), Words{"b"});
  EXPECT_EQ(
      imports_of("if sys.platform == 'win32': import a\nif x:\n  import b\nelse:\n  import c\n"),
      (Words{"b?", "c?"}));
  EXPECT_EQ(imports_of("with suppress(ImportError):\n  import a\nwith x: import b\n"),
            (Words{"a?", "b"}));
  EXPECT_EQ(imports_of("for x in y:\n  import a\nelse:\n  import b\n"), (Words{"a", "b"}));
}

TEST(PythonSource, KnowsWhatIsSurvived) {
  EXPECT_EQ(imports_of("try:\n  import a\nexcept ImportError:\n  a = None\n"), Words{"a?"});
  EXPECT_EQ(imports_of("try: import a\nexcept (OSError, ImportError) as e:\n  print(e)\n"),
            Words{"a?"});
  EXPECT_EQ(imports_of("try:\n  import a\nexcept:\n  import b\n"), (Words{"a?", "b?"}));
  // A library that does not load is no module that is not found.
  EXPECT_EQ(imports_of("try:\n  import a\nexcept ModuleNotFoundError:\n  pass\n"), Words{"a"});
  EXPECT_EQ(
      imports_of("try:\n  import a\nexcept ImportError as e:\n  raise ImportError('no') from e\n"),
      Words{"a"});
  EXPECT_EQ(imports_of("try:\n  import a\nfinally:\n  pass\n"), Words{"a"});
}

// Whether an import of a file with that text opens the library, and fails if it does not load.
bool must_open(std::string_view text, const std::string& library = "lib_C",
               bool another_loads = false) {
  const auto source = read_python_source(text);
  return Openings({&source}, {"lib_C", "lib_D"}).must_open(library, another_loads);
}

TEST(PythonSource, KnowsWhichLibrariesAreOpened) {
  EXPECT_TRUE(must_open("torch.ops.load_library('lib_C.so')\n"));
  EXPECT_FALSE(must_open("torch.ops.load_library('lib_C.so')\n", "lib_D"));
  EXPECT_TRUE(must_open("torch.ops.load_library(made_up())\n", "lib_D"));
  EXPECT_FALSE(must_open("torch.ops.load_library(made_up())\n", "lib_D", true));
  EXPECT_TRUE(must_open("torch.ops.load_library('lib_C.so')\n", "lib_C", true));
  EXPECT_FALSE(must_open("import torch\n"));
  const std::string load = "def load(name):\n  torch.ops.load_library(name)\n";
  EXPECT_FALSE(must_open(load));
  EXPECT_TRUE(must_open(load + "load('lib_C')\n"));
  EXPECT_TRUE(must_open(load + "def start():\n  load('lib_C')\nstart()\n"));
  EXPECT_FALSE(must_open(load + "def later():\n  load('lib_C')\n"));
  EXPECT_FALSE(must_open(load + "try:\n  load('lib_C')\nexcept OSError:\n  pass\n"));
  // Operators that are described must be there.
  EXPECT_TRUE(must_open(load + "try:\n  load('lib_C')\nexcept OSError:\n  pass\n"
                               "@torch.library.register_fake('ns::op')\ndef fake(): pass\n"));
  // One attempt after the other, and at the end it gives up.
  EXPECT_TRUE(
      must_open("def load():\n  for v in (1, 2):\n    try:\n      CDLL(f'lib{v}')\n"
                "    except OSError:\n      pass\n  raise RuntimeError('none')\nload()\n"));
}

}  // namespace
}  // namespace wheelscope
