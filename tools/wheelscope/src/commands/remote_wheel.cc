// Reads or fetches as much of a wheel as is needed, and judges it.
#include "commands/remote_wheel.h"

#include "answers/owners.h"
#include "commands/inputs.h"
#include "facts/wheel.h"
#include "readers/zip.h"

namespace wheelscope {

Result<ExaminedWheel> read_local_wheel(const std::string& path) {
  ExaminedWheel wheel{.item = TRY(read_item(path, {.symbols = true}))};
  const auto source = std::make_shared<const Source>(TRY(Source::map(path)));
  if (auto files = files_of_wheel(source->bytes(), source)) wheel.files = std::move(*files);
  return wheel;
}

Result<ExaminedWheel> read_remote_wheel(Http& http, Cache& cache, const RemoteFile& file,
                                        const std::string& name, std::string metadata,
                                        const WheelReading& reading,
                                        const ClaimsReader& on_claims) {
  const auto keeper =
      std::make_shared<const Remote>(TRY(Remote::open(http, cache, file, reading.deep)));
  const auto& remote = *keeper;
  const WheelInput input{name, remote.bytes()};
  auto facts = remote.is_whole() ? read_wheel(input, {.symbols = true})
                                 : read_wheel_start(input, is_known_library, std::move(metadata),
                                                    reading.numpy, on_claims);
  if (auto failure = remote.failure(); !failure.empty()) return fail(0, failure);
  if (!facts) return fail(facts.error().offset, shown_url(file.url) + ": " + facts.error().what);
  return ExaminedWheel{.item = examine(std::move(*facts)),
                       .files = TRY(files_of_wheel(remote.bytes(), keeper)),
                       .remote = keeper,
                       .gave_ranges = reading.deep || !remote.is_whole() || !is_url(file.url)};
}

Result<WheelFiles> files_of_wheel(Bytes bytes, std::shared_ptr<const void> keeper) {
  auto archive = std::make_shared<ZipArchive>(TRY(read_zip(bytes, {}, LocalHeaders::left)));
  WheelFiles files;
  auto members = std::make_shared<std::map<std::string, ZipMember*>>();
  for (auto& member : archive->members) {
    if (!member.readable || member.is_folder()) continue;
    const auto path = installed_path(member.name);
    files.names.push_back(path);
    members->emplace(path, &member);
  }
  files.read = [bytes, keeper, archive,
                members](const std::string& name) -> std::optional<std::string> {
    constexpr std::uint64_t longest = 16 << 20;
    const auto found = members->find(name);
    if (found == members->end() || found->second->size > longest) return std::nullopt;
    auto member = *found->second;
    ask_for(bytes, member);
    if (!locate_data(bytes, member)) return std::nullopt;
    const auto data = read_member(bytes, member);
    return data ? std::optional(std::string(data->bytes().text())) : std::nullopt;
  };
  return files;
}

RemoteFile on_its_server(const IndexFile& file) {
  return {file.url, file.sha256, file.size};
}

namespace {

std::string metadata_key(const IndexFile& file) {
  return file.url + "#" + file.sha256 + "@metadata";
}

HttpRequest metadata_request(const IndexFile& file) {
  constexpr std::uint64_t longest = 16 << 20;
  return {.url = file.url + ".metadata", .most = longest};
}

}  // namespace

std::string metadata_of_index(Http& http, Cache& cache, const IndexFile& file) {
  if (!file.has_metadata) return {};
  const auto key = metadata_key(file);
  if (auto known = file.sha256.empty() ? std::nullopt : cache.find(key)) return *known;
  const auto answer = http.get(metadata_request(file));
  if (!answer) return {};
  if (!file.sha256.empty()) cache.store(key, answer->body);
  return answer->body;
}

void expect_metadata_of(Http& http, Cache& cache, const IndexFile& file) {
  if (!file.has_metadata)
    Remote::expect(http, cache, on_its_server(file));
  else if (file.sha256.empty() || !cache.has(metadata_key(file)))
    http.expect(metadata_request(file));
}

Result<std::string> read_metadata(Http& http, Cache& cache, const IndexFile& on_index) {
  if (auto text = metadata_of_index(http, cache, on_index); !text.empty()) return text;
  const auto file = on_its_server(on_index);
  const auto remote = TRY(Remote::open(http, cache, file));
  auto text = read_wheel_metadata({file.url, remote.bytes()});
  if (auto failure = remote.failure(); !failure.empty()) return fail(0, failure);
  if (!text) return fail(0, shown_url(file.url) + ": " + text.error().what);
  return text;
}

}  // namespace wheelscope
