// Lists, reads and writes files.
#include "source/files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

namespace wheelscope {
namespace {

bool starts_like_input(const std::filesystem::path& path) {
  if (path.extension() == ".whl") return true;
  std::array<char, 4096> bytes{};
  std::ifstream(path, std::ios::binary).read(bytes.data(), bytes.size());
  const std::string_view text(bytes.data(), bytes.size()), start = text.substr(0, 8);
  if (path.extension() == ".ptx") return text.find("\n.target ") != text.npos;
  return start.starts_with(
             "\x7f"
             "ELF") ||
         start == "!<arch>\n" || start.starts_with("\x50\xed\x55\xba");  // a fat binary
}

}  // namespace

Result<std::vector<std::string>> expand_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector{path};
  std::vector<std::string> files;
  for (auto entry = fs::recursive_directory_iterator(
           path, fs::directory_options::skip_permission_denied, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_regular_file(error) && !entry->is_symlink(error) &&
        starts_like_input(entry->path()))
      files.push_back(entry->path());
  }
  if (error) return fail(path, error.message());
  std::ranges::sort(files);
  return files;
}

Result<std::string> read_text(const std::string& path) {
  constexpr std::uint64_t largest = 16 << 20;
  const auto file = TRY(Source::map(path));
  if (file.bytes().size() > largest) return fail(path, "too large for a text");
  return std::string(file.bytes().text());
}

Result<void> write_file(const std::string& path, std::string_view contents) {
  std::error_code error;
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  std::ofstream file(path, std::ios::binary);
  file.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  if (!file.flush()) return fail(path, "cannot be written");
  return {};
}

}  // namespace wheelscope
