// Starts programs without a shell.
#include "source/program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "text/text.h"

namespace wheelscope {
namespace {

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
