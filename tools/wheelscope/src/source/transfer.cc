// Tells libcurl what to fetch and checks the answer: a range must be the requested one, and nothing
// may be longer than its limit.
#include "source/transfer.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "source/http.h"
#include "text/text.h"

namespace wheelscope {
namespace {

std::optional<std::uint64_t> decimal(std::string_view text) {
  std::uint64_t value = 0;
  const auto* begin = text.data();
  const auto* end = begin + text.size();
  const auto parsed = std::from_chars(begin, end, value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

std::string spelled(const ByteRange& range) {
  if (!range.offset) return "-" + std::to_string(range.length);
  return std::to_string(*range.offset) + "-" + std::to_string(*range.offset + range.length - 1);
}

bool may_pass(CURLcode code) {
  return code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT ||
         code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR ||
         code == CURLE_GOT_NOTHING || code == CURLE_HTTP2_STREAM || code == CURLE_SSL_CONNECT_ERROR;
}

bool may_pass(long status) {
  return status == 408 || status == 429 || status >= 500;
}

std::string meaning_of(long status, const std::string& url) {
  const auto code = " (HTTP " + std::to_string(status) + ")";
  if (status == 401 || status == 403)
    return "the server wants other credentials" + code + ": write `machine " + host_of(url) +
           " login NAME password WORD` into ~/.netrc";
  if (status == 404 || status == 410) return "the server has no such file" + code;
  if (status == 416) return "the file is shorter than it was" + code + "; it changed meanwhile";
  if (status >= 300 && status < 400) return "the server redirects without saying where" + code;
  return "the server refuses to answer" + code;
}

}  // namespace

Transfer::Transfer(HttpRequest request, const Connecting& connecting)
    : request_(std::move(request)), handle_(curl_easy_init()) {
  if (handle_) prepare(connecting);
}

Transfer::~Transfer() {
  curl_slist_free_all(headers_);
  curl_easy_cleanup(handle_);
}

std::optional<Result<HttpAnswer>> Transfer::outcome(CURLcode code) {
  curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status_);
  char* url = nullptr;
  curl_easy_getinfo(handle_, CURLINFO_EFFECTIVE_URL, &url);
  if (url) answer_.url = url;
  if (stopped_ == Stopped::whole_file) return Result<HttpAnswer>(std::move(answer_));
  if (stopped_ == Stopped::wrong_range || stopped_ == Stopped::too_long ||
      stopped_ == Stopped::by_sink)
    return fail(error_);
  if (status_ >= 300 && (code == CURLE_OK || code == CURLE_WRITE_ERROR)) {
    error_ = meaning_of(status_, answer_.url);
    if (may_pass(status_)) return std::nullopt;
    return fail(error_);
  }
  if (code != CURLE_OK) {
    error_ = told_[0] ? told_.data() : curl_easy_strerror(code);
    if (code == CURLE_SSL_CACERT_BADFILE)
      error_ = "no certificate can be read from " + certificates_ +
               ", which says whom to believe; let PIP_CERT name another file";
    if (code == CURLE_PARTIAL_FILE) error_ = "the answer is cut off: " + error_;
    if (may_pass(code)) return std::nullopt;
    return fail(error_);
  }
  if (request_.range && !answer_.partial && taken_ == 0) {  // an empty file
    answer_.size = 0;
    return Result<HttpAnswer>(std::move(answer_));
  }
  if (answer_.partial && taken_ != expected_) {
    error_ = "the answer is cut off: it has " + std::to_string(taken_) + " of " +
             std::to_string(expected_) + " bytes";
    return std::nullopt;
  }
  return Result<HttpAnswer>(std::move(answer_));
}

Result<HttpAnswer> Transfer::fail(const std::string& what) const {
  return wheelscope::fail(0, shown_url(request_.url) + ": " + what);
}

void Transfer::prepare(const Connecting& connecting) {
  auto set = [&](CURLoption option, auto value) { curl_easy_setopt(handle_, option, value); };
  const bool secure = request_.url.starts_with("https:");
  set(CURLOPT_URL, request_.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
  set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_2TLS});
  set(CURLOPT_PIPEWAIT, 1L);  // rather than another connection, where one can carry many
  set(CURLOPT_HTTPAUTH, long{CURLAUTH_BASIC});
  set(CURLOPT_PROXYAUTH, long{CURLAUTH_BASIC});
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 10L);
  set(CURLOPT_NETRC, long{CURL_NETRC_OPTIONAL});
  if (const char* netrc = std::getenv("NETRC"); netrc && *netrc) set(CURLOPT_NETRC_FILE, netrc);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "wheelscope");
  set(CURLOPT_BUFFERSIZE, 256L << 10);  // fewer pieces
  set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(connecting.timeout));
  set(CURLOPT_LOW_SPEED_LIMIT, 1024L);  // bytes a second, on average over this time:
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(connecting.timeout));
  if (!connecting.certificates.empty()) {
    set(CURLOPT_CAINFO, connecting.certificates.c_str());
    set(CURLOPT_CAPATH, nullptr);  // with a folder beside the file, each connection reads it anew
    certificates_ = connecting.certificates;
  }
  set(CURLOPT_ERRORBUFFER, told_.data());
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  if (!request_.accept.empty())
    headers_ = curl_slist_append(headers_, ("Accept: " + request_.accept).c_str());
  if (request_.range) {
    headers_ = curl_slist_append(headers_, ("Range: bytes=" + spelled(*request_.range)).c_str());
  } else if (!request_.sink) {
    set(CURLOPT_ACCEPT_ENCODING, "gzip");  // pages of an index are long and repetitive
  }
  if (headers_) set(CURLOPT_HTTPHEADER, headers_);
}

std::size_t Transfer::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  static_cast<Transfer*>(self)->read_header({data, size * count});
  return size * count;
}

void Transfer::read_header(std::string_view line) {
  if (line.starts_with("HTTP/")) answer_ = {};  // forget the headers of a redirect
  const auto colon = line.find(':');
  if (colon == line.npos) return;
  const auto name = lower(line.substr(0, colon));
  const auto value = trim(line.substr(colon + 1));
  if (name == "content-type") answer_.type = lower(trim(value.substr(0, value.find(';'))));
  if (name == "etag") answer_.validator = value;
  if (name == "last-modified" && answer_.validator.empty()) answer_.validator = value;
  if (name == "content-range") content_range_ = value;
}

std::size_t Transfer::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  return static_cast<Transfer*>(self)->take({data, size * count}) ? size * count : 0;
}

bool Transfer::stop(Stopped why, std::string what) {
  stopped_ = why;
  error_ = std::move(what);
  return false;
}

bool Transfer::take(std::string_view part) {
  if (taken_ == 0 && !start()) return false;
  constexpr std::uint64_t longest_excuse = 1 << 20;
  if (status_ >= 300) return (taken_ += part.size()) < longest_excuse;
  const auto most = answer_.partial ? expected_ : request_.most;
  if (part.size() > most - taken_)
    return stop(Stopped::too_long, "the answer is longer than " +
                                       (answer_.partial ? "the range that was asked for"
                                                        : human_size(most) + ", the most that is "
                                                                             "taken"));
  const auto at = taken_;
  taken_ += part.size();
  if (!request_.sink) {
    answer_.body += part;
  } else if (!request_.sink(at, part)) {
    return stop(Stopped::by_sink, "there is no room for the answer");
  }
  return true;
}

// Checks, at the first byte of a body, that it is what was requested.
bool Transfer::start() {
  curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status_);
  curl_off_t length = -1;
  curl_easy_getinfo(handle_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  if (!request_.range || status_ >= 300) {
    if (length >= 0) answer_.size = static_cast<std::uint64_t>(length);
    return true;
  }
  if (status_ != 206) {
    if (length >= 0) answer_.size = static_cast<std::uint64_t>(length);
    return stop(Stopped::whole_file);
  }
  // bytes 100-199/1000
  const auto text = std::string_view(content_range_);
  const auto dash = text.find('-'), slash = text.find('/');
  const auto& wanted = *request_.range;
  if (text.starts_with("bytes ") && dash != text.npos && slash != text.npos && dash < slash) {
    const auto first = decimal(text.substr(6, dash - 6)),
               last = decimal(text.substr(dash + 1, slash - dash - 1)),
               size = decimal(text.substr(slash + 1));
    if (first && last && size && *first <= *last && *last < *size) {
      const auto offset = wanted.offset.value_or(*size - std::min(wanted.length, *size));
      if (*first == offset && *last == std::min(offset + wanted.length, *size) - 1) {
        answer_.partial = true;
        answer_.offset = *first;
        answer_.size = size;
        expected_ = *last - *first + 1;
        return true;
      }
    }
  }
  return stop(Stopped::wrong_range, "asked for bytes " + spelled(wanted) +
                                        ", the server sends others: '" + content_range_ + "'");
}

}  // namespace wheelscope
