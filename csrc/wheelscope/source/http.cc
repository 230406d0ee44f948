// Asks libcurl, and judges what came: a range must be the one that was asked for, and nothing may
// be longer than its limit.
#include "source/http.h"

#include <curl/curl.h>
#include <nss.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <thread>

#include "text/text.h"

namespace wheelscope {
namespace {

constexpr int attempts = 3;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The certificates to trust: those that pip and other programs are told of, or else where systems
// keep them. A static program cannot know that place of its system.
std::string find_certificates() {
  for (const auto* name : {"PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}) {
    if (auto file = environment(name); !file.empty()) return file;
  }
  for (const auto* file : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (access(file, R_OK) == 0) return file;
  }
  return {};
}

void set_up_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    // A static program must not open the system's modules for names and for OpenSSL: they belong to
    // another C library.
    __nss_configure_lookup("hosts", "files dns");
    OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    curl_global_init(CURL_GLOBAL_DEFAULT);
  });
}

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

std::string host_of(const std::string& url) {
  const auto start = url.find("://");
  if (start == url.npos) return {};
  auto host = url.substr(start + 3, url.find_first_of("/?#", start + 3) - start - 3);
  if (const auto at = host.rfind('@'); at != host.npos) host.erase(0, at + 1);
  return host;
}

std::string meaning_of(long status, const std::string& url) {
  const auto code = " (HTTP " + std::to_string(status) + ")";
  if (status == 401 || status == 403)
    return "the server wants other credentials" + code + ": write `machine " +
           host_of(url).substr(0, host_of(url).find(':')) +
           " login NAME password WORD` into ~/.netrc";
  if (status == 404 || status == 410) return "the server has no such file" + code;
  if (status == 416) return "the file is shorter than it was" + code + "; it changed meanwhile";
  if (status >= 300 && status < 400) return "the server redirects without saying where" + code;
  return "the server refuses to answer" + code;
}

}  // namespace

// What connections know of servers: addresses, and sessions that a new connection goes on with.
struct Http::Shared {
  CURLSH* handle = nullptr;
  std::array<std::mutex, CURL_LOCK_DATA_LAST> mutexes;

  Shared() : handle(curl_share_init()) {
    curl_share_setopt(handle, CURLSHOPT_USERDATA, this);
    curl_share_setopt(handle, CURLSHOPT_LOCKFUNC, &Shared::lock);
    curl_share_setopt(handle, CURLSHOPT_UNLOCKFUNC, &Shared::unlock);
    curl_share_setopt(handle, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
    curl_share_setopt(handle, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { curl_share_cleanup(handle); }

  static void lock(CURL*, curl_lock_data data, curl_lock_access, void* self) {
    static_cast<Shared*>(self)->mutexes.at(data).lock();
  }
  static void unlock(CURL*, curl_lock_data data, void* self) {
    static_cast<Shared*>(self)->mutexes.at(data).unlock();
  }
};

// One attempt at a request.
class Http::Transfer {
 public:
  Transfer(Http& http, const HttpRequest& request) : http_(http), request_(request) {
    handle_ = http.take_handle();
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    curl_slist_free_all(headers_);
    http_.return_handle(handle_);
  }

  // Nothing: another attempt may succeed; error_ says what happened.
  std::optional<Result<HttpAnswer>> run() {
    if (!handle_) return fail("no memory for a connection");
    prepare();
    const auto code = curl_easy_perform(handle_);
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

  const std::string& error() const { return error_; }

 private:
  enum class Stopped { no, whole_file, wrong_range, too_long, by_sink };

  Result<HttpAnswer> fail(const std::string& what) const {
    return std::unexpected(Error{0, shown_url(request_.url) + ": " + what});
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    curl_easy_setopt(handle_, option, value);
  }

  void prepare() {
    const bool secure = request_.url.starts_with("https:");
    set(CURLOPT_URL, request_.url.c_str());
    set(CURLOPT_SHARE, http_.shared_->handle);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
    set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
    set(CURLOPT_HTTPAUTH, long{CURLAUTH_BASIC});
    set(CURLOPT_PROXYAUTH, long{CURLAUTH_BASIC});
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, 10L);
    set(CURLOPT_NETRC, long{CURL_NETRC_OPTIONAL});
    const auto netrc = environment("NETRC");
    if (!netrc.empty()) set(CURLOPT_NETRC_FILE, netrc.c_str());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "wheelscope");
    set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(http_.timeout_));
    set(CURLOPT_LOW_SPEED_LIMIT, 1024L);  // bytes a second, on average over this time:
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(http_.timeout_));
    if (!http_.certificates_.empty()) set(CURLOPT_CAINFO, http_.certificates_.c_str());
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

  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) {
    static_cast<Transfer*>(self)->read_header({data, size * count});
    return size * count;
  }

  void read_header(std::string_view line) {
    if (line.starts_with("HTTP/")) answer_ = {};  // that of a redirect does not count
    const auto colon = line.find(':');
    if (colon == line.npos) return;
    const auto name = lower(line.substr(0, colon));
    const auto value = trim(line.substr(colon + 1));
    if (name == "content-type") answer_.type = lower(trim(value.substr(0, value.find(';'))));
    if (name == "etag") answer_.validator = value;
    if (name == "last-modified" && answer_.validator.empty()) answer_.validator = value;
    if (name == "content-range") content_range_ = value;
  }

  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self) {
    return static_cast<Transfer*>(self)->take({data, size * count}) ? size * count : 0;
  }

  bool stop(Stopped why, std::string what = {}) {
    stopped_ = why;
    error_ = std::move(what);
    return false;
  }

  bool take(std::string_view part) {
    http_.received_ += part.size();
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

  // At the first byte of a body: is it what was asked for?
  bool start() {
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

  Http& http_;
  const HttpRequest& request_;
  void* handle_ = nullptr;
  curl_slist* headers_ = nullptr;
  std::array<char, CURL_ERROR_SIZE> told_{};
  long status_ = 0;
  std::uint64_t taken_ = 0, expected_ = 0;
  Stopped stopped_ = Stopped::no;
  std::string error_, content_range_;
  HttpAnswer answer_;
};

Http::Http(int timeout) : timeout_(timeout), certificates_(find_certificates()) {
  set_up_once();
  shared_ = std::make_unique<Shared>();
}

Http::~Http() {
  for (auto* handle : idle_) curl_easy_cleanup(handle);
}

void* Http::take_handle() {
  const std::scoped_lock lock(mutex_);
  if (idle_.empty()) return curl_easy_init();
  auto* handle = idle_.back();
  idle_.pop_back();
  return handle;
}

void Http::return_handle(void* handle) {
  if (!handle) return;
  curl_easy_reset(handle);  // its connections stay
  const std::scoped_lock lock(mutex_);
  idle_.push_back(handle);
}

Result<HttpAnswer> Http::get(const HttpRequest& request) {
  std::string error;
  if (std::ranges::any_of(request.url, [](char c) { return c <= ' ' || c > '~'; }))
    return std::unexpected(
        Error{0, shown_url(request.url) + ": write it with ASCII letters, others as %NN or xn--"});
  for (int attempt = 0; attempt < attempts; ++attempt) {
    constexpr auto pause = std::chrono::milliseconds(300);
    if (attempt > 0) std::this_thread::sleep_for(pause * attempt * attempt);
    Transfer transfer(*this, request);
    if (auto done = transfer.run()) return std::move(*done);
    error = transfer.error();
  }
  return std::unexpected(Error{
      0, shown_url(request.url) + ": " + error + "; tried " + std::to_string(attempts) + " times"});
}

bool is_url(std::string_view text) {
  return text.starts_with("http://") || text.starts_with("https://");
}

std::string shown_url(const std::string& url) {
  auto shown = url.substr(0, url.find_first_of("?#"));
  const auto start = shown.find("://");
  if (start == shown.npos) return shown;
  const auto end = std::min(shown.find('/', start + 3), shown.size());
  if (const auto at = shown.rfind('@', end); at != shown.npos && at > start)
    shown.erase(start + 3, at - start - 2);
  return shown;
}

Result<std::string> resolve_url(const std::string& page, const std::string& link) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(curl_url(), curl_url_cleanup);
  char* whole = nullptr;
  if (curl_url_set(url.get(), CURLUPART_URL, page.c_str(), 0) != CURLUE_OK ||
      curl_url_set(url.get(), CURLUPART_URL, link.c_str(), 0) != CURLUE_OK ||
      curl_url_get(url.get(), CURLUPART_URL, &whole, 0) != CURLUE_OK)
    return std::unexpected(Error{0, "'" + shown_url(link) + "' is no link"});
  std::string resolved(whole);
  curl_free(whole);
  if (!is_url(resolved))
    return std::unexpected(Error{0, "'" + shown_url(link) + "' leads to no web server"});
  return resolved;
}

}  // namespace wheelscope
