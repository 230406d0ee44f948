// Finds what Python's getpath.py and site.py would find, in the same files.
//
//   pyvenv.cfg      beside the interpreter or one folder up: that folder is a virtual environment
//   lib/python3.11  below the folder of the real interpreter: the standard library. Its file
//                   _sysconfigdata_*.py has SOABI, which names the ABI:
//                   cpython-311-x86_64-linux-gnu
//   site-packages   below the standard library, or Debian's dist-packages
//   3.11.7          the whole version: in the headers, or a text in the interpreter or its
//   libpython
//
// A shim of pyenv stands for the version that `pyenv exec` would choose: PYENV_VERSION, or else the
// nearest file .python-version from the current folder upwards, or else the file `version` of
// pyenv's folder, or else the system's Python. Each may name several, of which the first that has
// the program counts.
#include "machine/machine.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "loader/disk.h"
#include "packaging/tag.h"
#include "source/system.h"
#include "text/text.h"

namespace wheelscope {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// pyvenv.cfg: lines `key = value`.
struct VirtualEnvironment {
  fs::path prefix;
  fs::path home;        // the folder of the interpreter that it was made by
  std::string version;  // of that interpreter, then
  bool system_site_packages = false;
};

std::optional<VirtualEnvironment> find_virtual_environment(const fs::path& executable) {
  const auto folder = executable.parent_path();
  for (const auto& prefix : {folder, folder.parent_path()}) {
    const auto text = read_text((prefix / "pyvenv.cfg").string());
    if (!text) continue;
    VirtualEnvironment found{.prefix = prefix};
    for (const auto& line : split(*text, '\n')) {
      const auto equals = line.find('=');
      if (equals == line.npos) continue;
      const auto key = lower(trim(std::string_view(line).substr(0, equals)));
      const auto value = trim(std::string_view(line).substr(equals + 1));
      if (key == "include-system-site-packages")
        found.system_site_packages = lower(value) == "true";
      if (key == "home") found.home = value;
      if (key == "version" || key == "version_info") found.version = value;  // venv's, virtualenv's
    }
    return found;
  }
  return std::nullopt;
}

// True if Python's interpreter is inside it, or in a library that it needs.
bool runs_python(const LibraryFacts& program) {
  return std::ranges::any_of(program.needed,
                             [](const auto& name) { return name.starts_with("libpython3"); }) ||
         std::ranges::any_of(program.symbols, [](const SymbolFact& symbol) {
           return symbol.defined && (symbol.name == "Py_BytesMain" || symbol.name == "Py_Main");
         });
}

// Where the standard library is: base/lib/python3.11, base/lib64/python3.14t.
struct StandardLibrary {
  fs::path base, folder;
  std::string name() const { return folder.filename().string(); }
};

// Finds the library by the interpreter's own name; or else, as some are only named python3, by the
// version of the virtual environment; or else takes the only one that there is.
std::optional<StandardLibrary> find_standard_library(const fs::path& base, const std::string& name,
                                                     const std::string& version) {
  std::vector<fs::path> folders;
  for (const auto* lib : {"lib", "lib64"}) {
    for (const auto& own : entries_of(base / lib)) {
      if (!own.starts_with("python3.") || !is_there(base / lib / own / "os.py")) continue;
      if (own == name) return StandardLibrary{base, base / lib / own};
      folders.push_back(base / lib / own);
    }
  }
  std::erase_if(folders, [&](const fs::path& folder) {
    const auto minor = PythonBuild(folder.filename().string().substr(6)).version;
    return !version.empty() && !version.starts_with(minor + ".");
  });
  if (folders.empty()) return std::nullopt;
  const bool same = std::ranges::all_of(
      folders, [&](const fs::path& one) { return one.filename() == folders.front().filename(); });
  return same ? std::optional(StandardLibrary{base, folders.front()}) : std::nullopt;
}

// Returns cp311 for 'SOABI': 'cpython-311-x86_64-linux-gnu'. The interpreter of a debug build
// beside the usual one has a file of its own.
std::string abi_of(const fs::path& standard_library, const std::string& minor) {
  std::vector<fs::path> files;
  for (const auto& name : entries_of(standard_library)) {
    if (name.starts_with("_sysconfigdata_") && name.ends_with(".py") &&
        !name.starts_with("_sysconfigdata_d_"))
      files.push_back(standard_library / name);
  }
  std::ranges::sort(files);
  for (const auto& file : files) {
    constexpr std::string_view mark = "'SOABI': 'cpython-";
    const auto text = read_text(file.string());
    const auto at = text ? text->find(mark) : std::string::npos;
    if (at == std::string::npos) continue;
    const auto abi = text->substr(at + mark.size(), 16);
    return "cp" + abi.substr(0, abi.find_first_of("-'"));
  }
  auto abi = "cp" + minor;  // 3.14t
  std::erase(abi, '.');
  return abi;
}

// True if a text is 3.11.7, 3.15.0rc2 or 3.12.1+ and nothing else.
bool is_version(std::string_view text, std::string_view minor) {
  if (!text.starts_with(minor) || text.size() < minor.size() + 2) return false;
  const auto micro = text.substr(minor.size());
  return micro[0] == '.' && micro[1] >= '0' && micro[1] <= '9' &&
         micro.find_first_not_of("0123456789abrc+", 1) == micro.npos;
}

// Reads `#define PY_VERSION "3.11.7"` in the headers, if they are installed.
std::string version_in_headers(const fs::path& base, const std::string& minor) {
  constexpr std::string_view mark = "#define PY_VERSION ";
  for (const auto* flags : {"", "t", "m", "d"}) {
    const auto text =
        read_text((base / "include" / ("python" + minor + flags) / "patchlevel.h").string());
    const auto at = text ? text->find(mark) : std::string::npos;
    const auto open = at == std::string::npos ? at : text->find('"', at);
    if (open == std::string::npos) continue;
    const auto version = text->substr(open + 1, text->find('"', open + 1) - open - 1);
    if (is_version(version, minor)) return version;
  }
  return {};
}

// Finds the version among a program's texts. A linker may have put it at the end of a longer text,
// such as the path of a prefix.
std::string version_in(const std::string& path, const std::string& minor) {
  constexpr std::size_t longest = 16;
  const auto file = Source::map(path);
  if (!file) return {};
  const auto text = file->bytes().text();
  std::string tail;
  for (auto at = text.find(minor + "."); at != text.npos; at = text.find(minor + ".", at + 1)) {
    const auto rest = text.substr(at, longest);
    const auto version = rest.substr(0, rest.find('\0'));
    if (version.size() == longest || at == 0 || !is_version(version, minor)) continue;
    if (text[at - 1] == '\0') return std::string(version);
    if (text[at - 1] == '-' || text[at - 1] == '/') tail = version;
  }
  return tail;
}

// Debian has no site-packages for its own Python; others have no dist-packages.
void add_system_site_packages(const fs::path& base, const std::string& library,
                              std::vector<fs::path>& folders) {
  if (const auto home = environment_variable("HOME");
      !home.empty() && environment_variable("PYTHONNOUSERSITE").empty())
    folders.push_back(fs::path(home) / ".local/lib" / library / "site-packages");
  const bool debian = is_there(base / "lib/python3/dist-packages");
  if (debian) {
    folders.push_back(base / "local/lib" / library / "dist-packages");
    folders.push_back(base / "lib/python3/dist-packages");
    folders.push_back(base / "lib" / library / "dist-packages");
  } else {
    for (const auto* lib : {"lib", "lib64"})
      folders.push_back(base / lib / library / "site-packages");
  }
}

std::vector<std::string> existing_once(const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  std::vector<fs::path> seen;
  for (const auto& folder : folders) {
    std::error_code error;
    const auto real = fs::canonical(folder, error);
    if (error || contains(seen, real)) continue;
    seen.push_back(real);
    names.push_back(folder.string());
  }
  return names;
}

namespace fs = std::filesystem;

// Reads versions from a text whose lines may have comments.
std::vector<std::string> versions_in(std::string text) {
  std::ranges::replace(text, ':', ' ');
  std::string words;
  for (const auto& line : split(text, '\n')) words += line.substr(0, line.find('#')) + "\n";
  return words_of(words);
}

std::vector<std::string> chosen_versions(const fs::path& root) {
  if (const auto chosen = environment_variable("PYENV_VERSION"); !chosen.empty())
    return versions_in(chosen);
  std::error_code error;
  for (auto folder = fs::current_path(error); !error; folder = folder.parent_path()) {
    if (const auto text = read_text((folder / ".python-version").string()))
      return versions_in(*text);
    if (folder == folder.parent_path()) break;
  }
  if (const auto text = read_text((root / "version").string())) return versions_in(*text);
  return {};
}

// versions/3.11.7 for 3.11.7, and the newest 3.11 for 3.11.
fs::path folder_of_version(const fs::path& root, const std::string& version) {
  std::error_code error;
  auto exact = root / "versions" / version;
  if (fs::is_directory(exact, error)) return exact;
  std::string newest;
  for (const auto& name : entries_of(root / "versions")) {
    if (name.starts_with(version + ".") && older(newest, name)) newest = name;
  }
  return newest.empty() ? fs::path() : root / "versions" / newest;
}

// The program of that name in the folders of PATH but this one.
std::string elsewhere_on_path(const std::string& name, const fs::path& shims) {
  for (const auto& folder : split(environment_variable("PATH"), ':')) {
    if (fs::path(folder).lexically_normal() == shims.lexically_normal() || folder.empty()) continue;
    const auto file = find_program(folder + "/" + name);
    if (!file.empty() && !is_pyenv_shim(file)) return file;
  }
  return {};
}

}  // namespace

Result<std::string> find_interpreter(const std::string& given) {
  auto meant = given;
  if (meant.empty()) {
    const auto active = environment_variable("VIRTUAL_ENV");
    if (!active.empty() && is_there(active + "/bin/python")) return active + "/bin/python";
    meant = "python3";
  }
  std::error_code error;
  if (fs::is_directory(meant, error)) {
    for (const auto* name : {"/bin/python", "/bin/python3"}) {
      if (is_there(meant + name)) return meant + name;
    }
    return fail(meant, "this folder has no bin/python: it is no Python environment");
  }
  const auto file = find_program(meant);
  if (file.empty() && given.empty()) return std::string();
  if (file.empty())
    return fail(given, given.find('/') == given.npos
                           ? "there is no such program on PATH"
                           : "there is no such program; give a Python interpreter, or the folder "
                             "of an environment");
  return is_pyenv_shim(file) ? interpreter_behind_shim(file) : file;
}

Result<Interpreter> read_interpreter(const std::string& executable) {
  std::error_code error;
  const auto real = fs::canonical(executable, error);
  if (error) return fail(executable, error.message());
  Disk disk;
  const auto* program = disk.open(real.string());
  if (!program)
    return fail(executable, "is no ELF program; give the interpreter itself, not a script");
  if (!runs_python(*program)) return fail(executable, "is no Python interpreter");
  const auto absolute = fs::absolute(executable).lexically_normal();
  const auto environment = find_virtual_environment(absolute);
  const auto hint = environment ? environment->version : std::string();
  const auto own_base = real.parent_path().parent_path();
  auto library = find_standard_library(own_base, real.filename().string(), hint);
  if (!library && environment)  // whose interpreter is a copy
    library = find_standard_library(fs::weakly_canonical(environment->home, error).parent_path(),
                                    real.filename().string(), hint);
  if (!library)
    return fail(executable, "no standard library of a CPython 3 belongs to it (" +
                                (own_base / "lib/python3.*").string() + ")");
  Interpreter found{.loader = program->interpreter};
  auto& facts = found.facts;
  facts.executable = absolute.string();
  facts.base_prefix = library->base.string();
  facts.architecture = program->machine;
  facts.abi = abi_of(library->folder, library->name().substr(6));
  const auto minor = PythonBuild(library->name().substr(6)).version;
  facts.version = version_in_headers(library->base, minor);
  if (facts.version.empty()) facts.version = version_in(real.string(), minor);
  for (const auto& needed : program->needed) {
    if (!facts.version.empty() || !needed.starts_with("libpython")) continue;
    Loader loader(disk.world(program->machine));
    const auto opened = loader.start(real.string());
    facts.version = version_in(loader.search(needed, opened.root), minor);
  }
  if (facts.version.empty()) facts.version = minor;
  std::vector<fs::path> folders;
  facts.prefix = environment ? environment->prefix.string() : facts.base_prefix;
  if (environment) {
    for (const auto* lib : {"lib", "lib64"})
      folders.push_back(environment->prefix / lib / library->name() / "site-packages");
  }
  if (!environment || environment->system_site_packages)
    add_system_site_packages(library->base, library->name(), folders);
  facts.site_packages = existing_once(folders);
  return found;
}

bool is_pyenv_shim(const std::string& file) {
  const auto text = read_text(file);
  return text && text->starts_with("#!") && text->find("PYENV_ROOT=") != text->npos;
}

Result<std::string> interpreter_behind_shim(const std::string& shim) {
  constexpr std::string_view mark = "PYENV_ROOT=\"";
  const auto text = TRY(read_text(shim));
  const auto at = text.find(mark);
  const auto start = at == text.npos ? at : at + mark.size();
  const fs::path root = at == text.npos
                            ? fs::path(shim).parent_path().parent_path()
                            : fs::path(text.substr(start, text.find('"', start) - start));
  const auto name = base_name(shim);
  auto versions = chosen_versions(root);
  if (versions.empty()) versions.emplace_back("system");
  for (const auto& version : versions) {
    auto file = version == "system"
                    ? elsewhere_on_path(name, fs::path(shim).parent_path())
                    : find_program((folder_of_version(root, version) / "bin" / name).string());
    if (!file.empty()) return file;
  }
  return fail(0, shim + ": pyenv has no " + name + " in the versions chosen here (" +
                     joined(versions) + ")");
}

}  // namespace wheelscope
