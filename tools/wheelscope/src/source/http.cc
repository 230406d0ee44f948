// All requests of a program go through one thread and one of libcurl's multi handles. So they share
// connections, each of which can carry many requests at once (HTTP/2), and the certificates, which
// take longer to read than most answers take to arrive.
#include "source/http.h"

#include <curl/curl.h>
#include <nss.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "source/system.h"
#include "source/transfer.h"

namespace wheelscope {
namespace {

constexpr int attempts = 3;
constexpr long connections_to_a_host = 16;

// Returns the certificates to trust: those that pip and other programs are told of, else those of
// the system. A static program does not know where its system keeps them.
std::string find_certificates() {
  for (const auto* name : {"PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}) {
    if (auto file = environment_variable(name); !file.empty()) return file;
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

// Returns a name for a request; requests of the same name have the same answer.
std::string name_of(const HttpRequest& request) {
  auto name = request.url + "\n" + request.accept;
  if (const auto& range = request.range)
    name += "\n" + std::to_string(range->length) + "@" +
            (range->offset ? std::to_string(*range->offset) : "end");
  return name;
}

}  // namespace

class Http::Exchange {
 public:
  struct Pending {
    Transfer transfer;
    std::promise<CURLcode> promise = {};
    std::future<CURLcode> code = promise.get_future();

    Pending(const HttpRequest& request, const Connecting& connecting)
        : transfer(request, connecting) {}
  };

  explicit Exchange(int timeout) : connecting_{timeout, find_certificates()} {
    curl_multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS, connections_to_a_host);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    thread_.request_stop();
    curl_multi_wakeup(multi_);
    thread_.join();
    for (const auto& [handle, pending] : running_) curl_multi_remove_handle(multi_, handle);
    running_.clear();
    waiting_.clear();
    expected_.clear();
    curl_multi_cleanup(multi_);
  }

  std::shared_ptr<Pending> start(const HttpRequest& request) {
    auto pending = std::make_shared<Pending>(request, connecting_);
    if (!pending->transfer.handle()) {
      pending->promise.set_value(CURLE_OUT_OF_MEMORY);
      return pending;
    }
    {
      const std::scoped_lock lock(mutex_);
      waiting_.push_back(pending);
    }
    curl_multi_wakeup(multi_);
    return pending;
  }

  void expect(const HttpRequest& request) {
    auto pending = start(request);
    const std::scoped_lock lock(mutex_);
    expected_.insert_or_assign(name_of(request), std::move(pending));
  }

  std::uint64_t received() const { return received_; }

  // Returns the request that expect() started, else a new one.
  std::shared_ptr<Pending> take_up(const HttpRequest& request) {
    {
      const std::scoped_lock lock(mutex_);
      if (auto found = expected_.extract(name_of(request))) return found.mapped();
    }
    return start(request);
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (auto& pending : take_waiting()) {
        auto* handle = pending->transfer.handle();
        curl_multi_add_handle(multi_, handle);
        running_.emplace(handle, std::move(pending));
      }
      int count = 0;
      curl_multi_perform(multi_, &count);
      while (const auto* message = curl_multi_info_read(multi_, &count)) {
        auto* handle = message->easy_handle;
        const auto code = message->data.result;
        curl_off_t size = 0;
        curl_easy_getinfo(handle, CURLINFO_SIZE_DOWNLOAD_T, &size);
        received_ += static_cast<std::uint64_t>(size);
        curl_multi_remove_handle(multi_, handle);
        if (auto done = running_.extract(handle)) done.mapped()->promise.set_value(code);
      }
      constexpr int longest_wait = 1000;  // milliseconds
      curl_multi_poll(multi_, nullptr, 0, longest_wait, nullptr);
    }
  }

  std::vector<std::shared_ptr<Pending>> take_waiting() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(waiting_, {});
  }

  Connecting connecting_;
  CURLM* multi_ = curl_multi_init();
  std::mutex mutex_;  // guards the following members
  std::vector<std::shared_ptr<Pending>> waiting_;
  std::map<std::string, std::shared_ptr<Pending>> expected_;
  std::map<CURL*, std::shared_ptr<Pending>> running_;  // used by the thread only
  std::jthread thread_;
  std::atomic<std::uint64_t> received_ = 0;
};

Http::Http(int timeout) {
  set_up_once();
  exchange_ = std::make_unique<Exchange>(timeout);
}

Http::~Http() = default;

std::uint64_t Http::received() const {
  return exchange_->received();
}

void Http::expect(const HttpRequest& request) {
  exchange_->expect(request);
}

Result<HttpAnswer> Http::get(const HttpRequest& request) {
  std::string error;
  if (std::ranges::any_of(request.url, [](char c) { return c <= ' ' || c > '~'; }))
    return fail(0, shown_url(request.url) + ": write it with ASCII letters, others as %NN or xn--");
  for (int attempt = 0; attempt < attempts; ++attempt) {
    constexpr auto pause = std::chrono::milliseconds(300);
    if (attempt > 0) std::this_thread::sleep_for(pause * attempt * attempt);
    const auto pending = attempt == 0 ? exchange_->take_up(request) : exchange_->start(request);
    const auto code = pending->code.get();
    if (auto done = pending->transfer.outcome(code)) return std::move(*done);
    error = pending->transfer.error();
  }
  return fail(
      0, shown_url(request.url) + ": " + error + "; tried " + std::to_string(attempts) + " times");
}

bool is_url(std::string_view text) {
  return text.starts_with("http://") || text.starts_with("https://");
}

std::string local_path(const std::string& address) {
  if (!address.starts_with(local_file)) return address;
  const auto path = address.substr(local_file.size(), address.find('#') - local_file.size());
  int length = 0;
  const std::unique_ptr<char, decltype(&curl_free)> plain(
      curl_easy_unescape(nullptr, path.c_str(), static_cast<int>(path.size()), &length), curl_free);
  return {plain.get(), static_cast<std::size_t>(length)};
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

std::string host_of(const std::string& url) {
  const auto start = url.find("://");
  if (start == url.npos) return {};
  auto host = url.substr(start + 3, url.find_first_of("/?#", start + 3) - start - 3);
  if (const auto at = host.rfind('@'); at != host.npos) host.erase(0, at + 1);
  return host.substr(0, host.find(':'));
}

Result<std::string> resolve_url(const std::string& page, const std::string& link) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(curl_url(), curl_url_cleanup);
  char* whole = nullptr;
  if (link.empty() ||  // some versions of curl take it for the page itself
      curl_url_set(url.get(), CURLUPART_URL, page.c_str(), 0) != CURLUE_OK ||
      curl_url_set(url.get(), CURLUPART_URL, link.c_str(), 0) != CURLUE_OK ||
      curl_url_get(url.get(), CURLUPART_URL, &whole, 0) != CURLUE_OK)
    return fail(0, "'" + shown_url(link) + "' is no link");
  std::string resolved(whole);
  curl_free(whole);
  if (!is_url(resolved)) return fail(0, "'" + shown_url(link) + "' leads to no web server");
  return resolved;
}

}  // namespace wheelscope
