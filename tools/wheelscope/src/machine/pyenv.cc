// Chooses a version as `pyenv exec` does: PYENV_VERSION, or else the nearest file .python-version
// from the current folder upwards, or else the file `version` of pyenv's folder, or else the
// system's Python. Each may name several, of which the first that has the program counts.
#include "machine/machine.h"

#include <algorithm>
#include <filesystem>

#include "source/files.h"
#include "source/program.h"
#include "text/text.h"

namespace wheelscope {
namespace {

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
