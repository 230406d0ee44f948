// Maps files, finds room for members in memory or in a temporary file, and fetches blocks.
#include "source/source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>

namespace wheelscope {
namespace {

// Keeps a large mapping from counting as this process's memory: returns pages that were read to the
// kernel's cache. Reading them again costs a minor fault.
void shed(const std::stop_token& stop, void* memory, std::size_t size) {
  constexpr auto pause = std::chrono::milliseconds(20);
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (!stopped.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); }))
    madvise(memory, size, MADV_DONTNEED);
}

}  // namespace

struct Source::Blocks {
  enum class State : std::uint8_t { absent, coming, here };

  std::mutex mutex;
  std::condition_variable changed;
  Fill fill;
  std::uint64_t block = 0;
  std::span<std::byte> memory;
  std::vector<State> states;
  Supply supply;  // used by views of this source

  void set(std::uint64_t first, std::uint64_t last, State state) {
    std::fill(states.begin() + static_cast<std::ptrdiff_t>(first),
              states.begin() + static_cast<std::ptrdiff_t>(last), state);
  }

  bool bring(std::uint64_t offset, std::uint64_t length) {
    std::unique_lock lock(mutex);
    const auto end = length == 0 ? offset / block : (offset + length - 1) / block + 1;
    for (auto first = offset / block; first < end; ++first) {
      changed.wait(lock, [&] { return states[first] != State::coming; });  // by another thread
      if (states[first] == State::here) continue;
      auto last = first;  // one request for neighbours that are all missing
      while (last < end && states[last] == State::absent) ++last;
      set(first, last, State::coming);
      lock.unlock();
      const auto from = first * block, to = std::min<std::uint64_t>(last * block, memory.size());
      const bool filled = fill(from, memory.subspan(from, to - from));
      lock.lock();
      set(first, last, filled ? State::here : State::absent);
      changed.notify_all();
      if (!filled) return false;
    }
    return true;
  }
};

void Source::Free::operator()(std::byte* memory) const {
  mapped ? void(munmap(memory, mapped)) : std::free(memory);
}

Source Source::view(Bytes bytes) {
  Source source;
  source.bytes_ = bytes;
  return source;
}

Result<Source> Source::map(const std::string& path) {
  auto fail = [&](const char* what) { return wheelscope::fail(0, path + ": " + what); };
  // O_NONBLOCK avoids waiting for the writer of a pipe, which is refused below.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return fail(std::strerror(errno));
  struct stat facts = {};
  const bool usable = fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode);
  Source source;
  if (usable && facts.st_size > 0) {
    const auto size = static_cast<std::size_t>(facts.st_size);
    void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (memory == MAP_FAILED) {
      const int problem = errno;
      close(descriptor);
      return fail(std::strerror(problem));
    }
    source.adopt(memory, size);
    constexpr std::size_t worth_trimming = 32 << 20;
    if (size > worth_trimming) source.trimmer_ = std::jthread(shed, memory, size);
  }
  close(descriptor);
  if (!usable) return fail("not a regular file");
  return source;
}

// Reserves fresh pages of the kernel, huge ones if possible. Pages that are never written cost
// nothing.
Source Source::reserve(std::uint64_t size) {
  Source source;
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  source.adopt(memory, size);
  return source;
}

bool Source::adopt(void* memory, std::uint64_t size) {
  if (memory == MAP_FAILED) return false;
  memory_ = {static_cast<std::byte*>(memory), Free{size}};
  bytes_ = Bytes({memory_.get(), size});
  return true;
}

Source Source::allocate(std::uint64_t size) {
  constexpr std::uint64_t worth_mapping = 4 << 20;
  if (size >= worth_mapping) {
    auto source = reserve(size);
    if (source.memory_) madvise(source.memory_.get(), size, MADV_HUGEPAGE);
    return source;
  }
  Source source;
  source.memory_ = {static_cast<std::byte*>(std::malloc(size)), Free{0}};
  source.bytes_ = Bytes({source.memory_.get(), source.memory_ ? size : 0});
  return source;
}

Source Source::spool(std::uint64_t size) {
  Source source;
  std::error_code error;
  const auto folder = std::filesystem::temp_directory_path(error);
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (descriptor < 0) return source;
  // A full disk must be noticed here; later, it would end the process by a signal.
  if (posix_fallocate(descriptor, 0, static_cast<off_t>(size)) == 0) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (source.adopt(memory, size)) source.trimmer_ = std::jthread(shed, memory, size);
  }
  close(descriptor);
  return source;
}

Source Source::lazy(std::uint64_t size, Fill fill, std::uint64_t block) {
  auto source = reserve(std::max<std::uint64_t>(size, 1));
  if (!source.memory_) return source;
  const std::span memory(source.memory_.get(), size);
  source.blocks_ = std::make_shared<Blocks>();
  auto& blocks = *source.blocks_;
  blocks.fill = std::move(fill);
  blocks.block = block;
  blocks.memory = memory;
  blocks.states.resize(size / block + 1);
  blocks.supply = [&blocks](std::uint64_t offset, std::uint64_t length) {
    return blocks.bring(offset, length);
  };
  source.bytes_ = Bytes(memory, &blocks.supply);
  return source;
}

void Pieces::add(Piece piece) {
  if (piece.empty()) return;
  size_ += piece.size();
  if (!list_.empty() && list_.back().data() + list_.back().size() == piece.data())
    list_.back() = {list_.back().data(), list_.back().size() + piece.size()};
  else
    list_.push_back(piece);
}

void Pieces::own(std::string text) {
  add(std::as_bytes(std::span(own_.emplace_back(std::move(text)))));
}

void Pieces::add_zeros(std::uint64_t count) {
  static constexpr std::array<std::byte, 64 << 10> zeros{};
  while (count > 0) {
    const auto some = std::min<std::uint64_t>(count, zeros.size());
    add(std::span(zeros).first(some));
    count -= some;
  }
}

Source Pieces::joined() const {
  auto output = Source::allocate(size_);
  auto room = output.writable();
  if (room.size() != size_) return {};
  for (const auto& piece : list_) {
    std::memcpy(room.data(), piece.data(), piece.size());
    room = room.subspan(piece.size());
  }
  return output;
}

}  // namespace wheelscope
