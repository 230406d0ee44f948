// Lists, reads and writes files.
#include "source/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <tuple>

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

std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    names.push_back(entry.path().filename().string());
  return names;
}

Result<std::string> read_text(const std::string& path) {
  constexpr std::uintmax_t largest = 16 << 20;
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return fail(path, error.message());
  if (size > largest) return fail(path, "too large for a text");
  // Not mapped: most texts are small, and there are thousands of them.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return fail(path, std::strerror(errno));
  std::string text(size, '\0');
  const auto length = ::read(descriptor, text.data(), size);
  const int problem = errno;
  close(descriptor);
  if (length < 0) return fail(path, std::strerror(problem));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

Result<void> write_file(const std::string& path, std::string_view contents) {
  std::error_code error;
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  const auto beside = path + "." + std::to_string(std::random_device()());
  std::ofstream file(beside, std::ios::binary);
  file.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  file.close();
  bool done = file.good();
  struct stat before{};
  if (done && stat(path.c_str(), &before) == 0) {
    std::ignore = chown(beside.c_str(), before.st_uid, before.st_gid);  // only works for root
    done = chmod(beside.c_str(), before.st_mode & 07777) == 0;
  }
  done = done && rename(beside.c_str(), path.c_str()) == 0;
  if (done) return {};
  const int problem = errno;
  unlink(beside.c_str());
  return fail(path, std::strerror(problem));
}

}  // namespace wheelscope
