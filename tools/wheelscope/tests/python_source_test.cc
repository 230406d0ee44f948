// Tests what Python files import and open, by their text. test_env_imports.py asks Python itself.
#include "machine/python_source.h"

#include <gtest/gtest.h>

namespace wheelscope {
namespace {

using Words = std::vector<std::string>;

// Returns each import as `dots + module: names`, with a question mark if it depends on something.
Words imports_of(std::string_view text, PythonReading reading) {
  Words found;
  for (const auto& one :
       read_python_source(text, target_of("3.11.7", "aarch64"), reading).imports) {
    auto word = std::string(one.dots, '.') + one.module + (one.need == Need::depends ? "?" : "");
    for (const auto& name : one.names) word += " " + name;
    found.push_back(word);
  }
  return found;
}

// Returns the imports, which must be the same whatever else is read.
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
  EXPECT_EQ(imports_of("with suppress(ImportError):\n  import a\nwith x: import b\n"), Words{"b?"});
  EXPECT_EQ(imports_of("for x in y:\n  import a\nelse:\n  import b\n"), (Words{"a?", "b?"}));
}

TEST(PythonSource, EvaluatesConditions) {
  auto runs = [](const std::string& condition) {
    const auto found = imports_of("if " + condition + ":\n  import a\n");
    return found.empty() ? "never" : found[0] == "a" ? "always" : "depends";
  };
  for (const auto* condition : {"True",
                                "1",
                                "sys.platform == 'linux'",
                                "sys.platform.startswith(('linux', 'darwin'))",
                                "os.name == \"posix\"",
                                "sys.version_info >= (3, 8)",
                                "sys.version_info[0] == 3",
                                "sys.version_info[:2] == (3, 11)",
                                "sys.version_info.minor > 9",
                                "not TYPE_CHECKING",
                                "sys.platform != 'win32' and os.name in ('posix', 'java')",
                                "(3, 8) <= sys.version_info",
                                "unknown() or True",
                                "platform.machine() == 'aarch64'",
                                "sys.maxsize > 2**32",
                                "'win' not in sys.platform",
                                "True if sys.platform == 'linux' else unknown",
                                "platform.system().lower() == 'linux'",
                                "(not False)",
                                "None is None"})
    EXPECT_STREQ(runs(condition), "always") << condition;
  for (const auto* condition :
       {"False", "0", "None", "typing.TYPE_CHECKING", "__name__ == '__main__'",
        "sys.platform == \"win32\"", "os.name == 'nt'", "sys.version_info < (3, 11)",
        "sys.version_info <= (3, 11)", "unknown() and False", "platform.system() == 'Windows'",
        "not sys.version_info >= (3,)", "sys.implementation.name == 'pypy'", "'' \"\""})
    EXPECT_STREQ(runs(condition), "never") << condition;
  // A text that only looks like the name of a system tells nothing.
  for (const auto* condition :
       {"x", "f(sys.platform)", "os.environ.get('win32')", "x == 'nt'", "\"win\" in argv",
        "version == (3, 8)", "not x", "x if y else z", "sys.version_info[x] == 3", "x < 1 < 2",
        "lambda: True", "[a for a in b]", "{'nt': 1}", "f'{x}'", "sys.platform == x",
        "sys.version_info >= tuple(map(int, '3.8'.split('.')))", "-1"})
    EXPECT_STREQ(runs(condition), "depends") << condition;
}

TEST(PythonSource, FollowsBranchesAndConstants) {
  EXPECT_EQ(imports_of("if os.name == 'nt':\n  import a\nelif x:\n  import b\nelse:\n  import c\n"),
            (Words{"b?", "c?"}));
  EXPECT_EQ(imports_of("if sys.version_info >= (3,):\n  import a\nelif x:\n  import b\nelse:\n"
                       "  import c\n"),
            Words{"a"});
  EXPECT_EQ(imports_of("WIN = sys.platform == 'win32'\nif WIN:\n  import a\nelse:\n  import b\n"),
            Words{"b"});
  // NumPy and its followers: only a build sets it.
  EXPECT_EQ(imports_of("try:\n  SETUP\nexcept NameError:\n  SETUP = False\nif SETUP:\n  import a\n"
                       "else:\n  import b\n"),
            Words{"b"});
  for (const auto* twice :
       {"X = True\nX = False\n", "X = True\ndef f():\n  global X\n", "X = True\nfrom y import X\n",
        "X = f()\n", "if y:\n  X = True\nelse:\n  X = 0\n"})
    EXPECT_EQ(imports_of(std::string(twice) + "if X:\n  import a\n").back(), "a?") << twice;
}

TEST(PythonSource, BlanksAroundDots) {
  EXPECT_EQ(imports_of("from a. b import c\nimport a . b, d\n"), (Words{"a.b c", "a.b", "d"}));
}

TEST(PythonSource, FunctionsThatTheFileCallsMayImport) {
  auto all = [](std::string_view text) { return imports_of(text, PythonReading::all); };
  EXPECT_EQ(all("def f():\n  import a\nf()\n"), Words{"a?"});
  EXPECT_EQ(all("def f():\n  import a\ndef g():\n  f()\ng()\n"), Words{"a?"});
  EXPECT_EQ(all("def f():\n  import a\ndef g():\n  f()\n"), Words{});
  EXPECT_EQ(all("importlib.import_module('a.b')\nimport_module('.c', __name__)\n__import__(x)\n"),
            (Words{"a.b", ".c"}));
  EXPECT_EQ(all("import_module('a.b.' + x)\n__import__('a%s' % x)\nimport_module('.' + x, y)\n"),
            Words{"a.b"});
}

TEST(PythonSource, KnowsWhatIsSurvived) {
  EXPECT_EQ(imports_of("try:\n  import a\nexcept ImportError:\n  a = None\n"), Words{});
  EXPECT_EQ(imports_of("try: import a\nexcept (OSError, ImportError) as e:\n  print(e)\n"),
            Words{});
  EXPECT_EQ(imports_of("try:\n  import a\nexcept:\n  import b\n"), Words{"b?"});
  // A library that does not load is not a module that is not found.
  EXPECT_EQ(imports_of("try:\n  import a\nexcept ModuleNotFoundError:\n  pass\n"), Words{"a"});
  EXPECT_EQ(
      imports_of("try:\n  import a\nexcept ImportError as e:\n  raise ImportError('no') from e\n"),
      Words{"a"});
  EXPECT_EQ(imports_of("try:\n  import a\nfinally:\n  pass\n"), Words{"a"});
  EXPECT_EQ(imports_of("try:\n  import a\nexcept ImportError:\n  if x:\n    raise\n"), Words{"a?"});
  EXPECT_EQ(imports_of("try:\n  import a\nexcept ERRORS:\n  pass\n"), Words{"a?"});
  EXPECT_EQ(imports_of("try:\n  import a\nexcept (KeyError, ValueError):\n  pass\n"), Words{"a"});
  EXPECT_EQ(imports_of("try:\n  import a\nexcept KeyError:\n  pass\nexcept Exception:\n  raise\n"),
            Words{"a"});
  // A function that does nothing but raise.
  EXPECT_EQ(imports_of("def no(e):\n  raise OSError\ntry:\n  import a\nexcept ImportError as e:\n"
                       "  no(e)\n",
                       PythonReading::all),
            Words{"a"});
}

// True if importing a file with that text opens the library, and fails if the library does not
// load.
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
