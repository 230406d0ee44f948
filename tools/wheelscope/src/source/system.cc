// Lists, reads and writes files, and starts programs without a shell.
#include "source/system.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <tuple>

#include "text/text.h"

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

bool is_program(const std::string& path) {
  return access(path.c_str(), X_OK) == 0;
}

// Reads until the writer closes its end.
Result<std::string> read_all(int pipe, int seconds) {
  using std::chrono::steady_clock;
  constexpr std::size_t most = 1 << 20;
  const auto end = steady_clock::now() + std::chrono::seconds(seconds);
  std::string text;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - steady_clock::now()).count();
    pollfd waiting{.fd = pipe, .events = POLLIN, .revents = 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) == 0)
      return fail(0, "did not answer within " + std::to_string(seconds) + " seconds");
    char buffer[4096];
    const auto count = read(pipe, buffer, sizeof buffer);
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(0, std::strerror(errno));
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() > most) return fail(0, "prints more than a mebibyte");
  }
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
  constexpr std::uintmax_t largest = 16 << 20, page = 4096;
  std::error_code error;
  auto size = std::filesystem::file_size(path, error);
  if (error) return fail(path, error.message());
  if (size > largest) return fail(path, "too large for a text");
  if (size == 0) size = page;  // a file of the kernel
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

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string find_program(const std::string& name) {
  if (name.find('/') != name.npos) return is_program(name) ? name : std::string();
  for (const auto& folder : split(environment_variable("PATH"), ':')) {
    const auto file = (folder.empty() ? "." : folder) + "/" + name;
    if (is_program(file)) return file;
  }
  return {};
}

Result<std::string> output_of(const std::vector<std::string>& command, int seconds) {
  const auto fail = [&](const std::string& what) {
    return wheelscope::fail(0, command.front() + " " + what);
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t process = 0;
  const int problem =
      posix_spawn(&process, words.front(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (problem != 0) {
    close(ends[0]);
    return fail(std::string("cannot be started: ") + std::strerror(problem));
  }
  auto text = read_all(ends[0], seconds);
  close(ends[0]);
  if (!text) kill(process, SIGKILL);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!text) return fail(text.error().what);
  if (!WIFEXITED(status)) return fail("was ended by a signal");
  if (WEXITSTATUS(status) != 0)
    return fail("failed with exit code " + std::to_string(WEXITSTATUS(status)));
  return text;
}

}  // namespace wheelscope
