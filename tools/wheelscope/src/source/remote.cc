// Fetches ranges of a file, from the cache if possible, and checks that all answers are of the same
// file.
#include "source/remote.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "text/text.h"

namespace wheelscope {
namespace {

constexpr std::uint64_t tail_size = 64 << 10;  // holds the directory and METADATA of most wheels
constexpr std::uint64_t largest_file = std::uint64_t{64} << 30;
constexpr std::uint64_t largest_of_unknown_size = std::uint64_t{256} << 20;

// Returns the cache's key for a part of a file.
std::string key_of(const std::string& url, const std::string& identity, const std::string& range) {
  return shown_url(url) + "#" + identity + "@" + range;
}

HttpRequest tail_of(const std::string& url) {
  return {.url = url, .range = ByteRange{.length = tail_size}};
}

// A file without a name, which vanishes when it is closed.
class Draft {
 public:
  Draft() {
    std::error_code error;
    const auto folder = std::filesystem::temp_directory_path(error);
    descriptor_ = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  // Writes a part; an offset of 0 starts anew.
  bool write(std::uint64_t offset, std::string_view part) const {
    if (offset == 0 && ftruncate(descriptor_, 0) != 0) return false;
    return pwrite(descriptor_, part.data(), part.size(), static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(part.size());
  }
  Result<Source> map() const { return Source::map("/proc/self/fd/" + std::to_string(descriptor_)); }

 private:
  int descriptor_ = -1;
};

}  // namespace

// The ranges of one file.
struct Remote::Ranges {
  Http& http;
  Cache& cache;
  std::string url;
  std::string identity;   // identifies its bytes: a hash, the server's ETag, or empty
  std::string validator;  // of the server's first answer
  std::uint64_t size = 0;
  std::string tail;
  std::atomic<std::uint64_t> read = 0;
  std::mutex mutex;
  std::string failure;

  std::string key(const std::string& range) const { return key_of(url, identity, range); }

  bool give_up(const std::string& why) {
    const std::scoped_lock lock(mutex);
    if (failure.empty()) failure = why;
    return false;
  }

  bool is_same_file(const std::string& other) {
    const std::scoped_lock lock(mutex);
    if (validator.empty()) validator = other;  // the first answer, if the tail came from the cache
    return validator == other;
  }

  Result<bool> open_tail() {  // false: the server gives no ranges
    if (!identity.empty()) {
      if (const auto known = cache.find(key("tail"))) {
        const auto line = known->find('\n');
        size = std::strtoull(known->c_str(), nullptr, 10);
        tail = known->substr(line + 1);
        read += tail.size();
        return true;
      }
    }
    auto answer = TRY(http.get(tail_of(url)));
    size = answer.size.value_or(0);
    if (!answer.partial) return false;
    validator = answer.validator;
    tail = std::move(answer.body);
    read += tail.size();
    const bool named_by_index = !identity.empty();
    if (!named_by_index && validator.starts_with('"')) identity = validator;
    if (named_by_index) cache.store(key("tail"), std::to_string(size) + "\n" + tail);
    return true;
  }

  bool fill(std::uint64_t offset, std::span<std::byte> room) {
    if (const auto tail_at = size - tail.size(); offset >= tail_at) {
      std::memcpy(room.data(), tail.data() + (offset - tail_at), room.size());
      return true;
    }
    const auto name = key(std::to_string(offset) + "+" + std::to_string(room.size()));
    if (!identity.empty()) {
      if (const auto known = cache.find(name); known && known->size() == room.size()) {
        std::memcpy(room.data(), known->data(), room.size());
        read += room.size();
        return true;
      }
    }
    const auto answer =
        http.get({.url = url, .range = ByteRange{.length = room.size(), .offset = offset}});
    if (!answer) return give_up(answer.error().what);
    if (!answer->partial || answer->size != size || !is_same_file(answer->validator))
      return give_up(shown_url(url) + ": the file changed while it was read; try again");
    std::memcpy(room.data(), answer->body.data(), room.size());
    read += room.size();
    if (!identity.empty()) cache.store(name, answer->body);
    return true;
  }
};

Result<Remote> Remote::open(Http& http, Cache& cache, const RemoteFile& file, bool all) {
  Remote remote;
  if (file.url.starts_with(local_file)) {
    remote.source_ = TRY(Source::map(file.url.substr(local_file.size())));
    return remote;
  }
  if (all && file.size) return download(http, file);
  remote.ranges_ = std::make_shared<Ranges>(http, cache, file.url, file.sha256);
  auto& ranges = *remote.ranges_;
  const bool gives_ranges = TRY(ranges.open_tail());
  if (all || !gives_ranges) {
    auto whole = file;
    if (!whole.size && ranges.size) whole.size = ranges.size;
    return download(http, whole);
  }
  if (file.size && *file.size != ranges.size)
    return fail(shown_url(file.url), "the index says " + std::to_string(*file.size) +
                                         " bytes, the server " + std::to_string(ranges.size));
  if (ranges.size > largest_file)
    return fail(shown_url(file.url),
                "claims " + std::to_string(ranges.size) + " bytes; no wheel is so large");
  remote.source_ = Source::lazy(
      ranges.size, [&ranges](auto offset, auto room) { return ranges.fill(offset, room); });
  return remote;
}

void Remote::expect(Http& http, const Cache& cache, const RemoteFile& file) {
  if (file.url.starts_with(local_file)) return;
  if (file.sha256.empty() || !cache.has(key_of(file.url, file.sha256, "tail")))
    http.expect(tail_of(file.url));
}

Result<Remote> Remote::download(Http& http, const RemoteFile& file) {
  const Draft draft;
  const auto answer =
      TRY(http.get({.url = file.url,
                    .most = file.size.value_or(largest_of_unknown_size),
                    .sink = [&](auto offset, auto part) { return draft.write(offset, part); }}));
  Remote remote;
  remote.source_ = TRY(draft.map());
  const auto bytes = remote.source_.bytes();
  const auto size = file.size ? file.size : answer.size;
  if (size && *size != bytes.size())
    return fail(shown_url(file.url), "the answer is cut off: it has " +
                                         std::to_string(bytes.size()) + " of " +
                                         std::to_string(*size) + " bytes");
  if (file.sha256.empty()) return remote;
  if (const auto sum = hexadecimal(sha256(bytes.text())); sum != file.sha256)
    return fail(shown_url(file.url), "is not the file that the index means: its SHA-256 is " + sum +
                                         ", that of the index " + file.sha256);
  return remote;
}

std::uint64_t Remote::read() const {
  return ranges_ ? ranges_->read.load() : source_.bytes().size();
}

std::string Remote::failure() const {
  if (!ranges_) return {};
  const std::scoped_lock lock(ranges_->mutex);
  return ranges_->failure;
}

}  // namespace wheelscope
