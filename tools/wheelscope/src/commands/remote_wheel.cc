// Fetches as much of a wheel as is needed, and judges it.
#include "commands/remote_wheel.h"

#include "answers/suppliers.h"
#include "facts/wheel.h"

namespace wheelscope {

Result<RemoteWheel> read_remote_wheel(Http& http, Cache& cache, const RemoteFile& file,
                                      const std::string& name, std::string metadata, bool deep,
                                      const ClaimsReader& on_claims) {
  const auto remote = TRY(Remote::open(http, cache, file, deep));
  const WheelInput input{name, remote.bytes()};
  auto facts = remote.is_whole()
                   ? read_wheel(input, {.symbols = true})
                   : read_wheel_start(input, is_known_library, std::move(metadata), on_claims);
  if (auto failure = remote.failure(); !failure.empty()) return std::unexpected(Error{0, failure});
  if (!facts)
    return std::unexpected(
        Error{facts.error().offset, shown_url(file.url) + ": " + facts.error().what});
  RemoteWheel wheel{.read = remote.read(), .gave_ranges = deep || !remote.is_whole()};
  wheel.item = examine(std::move(*facts));
  return wheel;
}

RemoteFile on_its_server(const IndexFile& file) {
  return {file.url, file.sha256, file.size};
}

std::string metadata_of_index(Http& http, Cache& cache, const IndexFile& file) {
  if (!file.has_metadata) return {};
  constexpr std::uint64_t longest = 16 << 20;
  const auto key = file.url + "#" + file.sha256 + "@metadata";
  if (auto known = file.sha256.empty() ? std::nullopt : cache.find(key)) return *known;
  const auto answer = http.get({.url = file.url + ".metadata", .most = longest});
  if (!answer) return {};
  if (!file.sha256.empty()) cache.store(key, answer->body);
  return answer->body;
}

Result<std::string> read_remote_metadata(Http& http, Cache& cache, const RemoteFile& file) {
  const auto remote = TRY(Remote::open(http, cache, file));
  auto text = read_wheel_metadata({file.url, remote.bytes()});
  if (auto failure = remote.failure(); !failure.empty()) return std::unexpected(Error{0, failure});
  if (!text) return std::unexpected(Error{0, shown_url(file.url) + ": " + text.error().what});
  return text;
}

}  // namespace wheelscope
