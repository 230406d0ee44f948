// Opens, maps, lists and writes files.
#include "input.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>

namespace wheelscope {
namespace {

std::unexpected<Error> fail(const std::string& path, const std::string& what) {
  return std::unexpected(Error{0, path + ": " + what});
}

// Keeps a large mapping from counting as this process's memory: pages that were read go back to the
// kernel's cache, from where they return at the cost of a minor fault if they are read again.
void trim(const std::stop_token& stop, void* memory, std::size_t size) {
  constexpr auto pause = std::chrono::milliseconds(20);
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (!stopped.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); }))
    madvise(memory, size, MADV_DONTNEED);
}

bool starts_like_input(const std::filesystem::path& path) {
  char start[4] = {};
  std::ifstream(path, std::ios::binary).read(start, sizeof start);
  return std::string_view(start, 4) ==
             "\x7f"
             "ELF" ||
         path.extension() == ".whl";
}

}  // namespace

void MappedFile::Unmap::operator()(const std::byte* memory) const {
  munmap(const_cast<std::byte*>(memory), size);
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: not to wait for the writer of a pipe, which is refused below.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return fail(path, std::strerror(errno));
  struct stat facts = {};
  const bool usable = fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode);
  MappedFile file;
  if (usable && facts.st_size > 0) {
    file.size_ = static_cast<std::size_t>(facts.st_size);
    void* memory = mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (memory == MAP_FAILED) {
      close(descriptor);
      return fail(path, std::strerror(errno));
    }
    file.memory_ = {static_cast<const std::byte*>(memory), Unmap{file.size_}};
    constexpr std::size_t worth_trimming = 32 << 20;
    if (file.size_ > worth_trimming) file.trimmer_ = std::jthread(trim, memory, file.size_);
  }
  close(descriptor);
  if (!usable) return fail(path, "not a regular file");
  return file;
}

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

Result<Item> read_item(const std::string& path, const ScanOptions& options) {
  const auto file = TRY(MappedFile::open(path));
  if (looks_like_elf(file.bytes())) return read_elf_file(path, file.bytes(), options);
  auto item = read_wheel({path, file.bytes()}, options);
  if (!item)
    return fail(path,
                item.error().what + " (at offset " + std::to_string(item.error().offset) + ")");
  return item;
}

Result<std::string> read_text(const std::string& path) {
  const auto file = TRY(MappedFile::open(path));
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
