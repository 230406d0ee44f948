// Answers of web servers, by libcurl: whole texts, and ranges of files. To libcurl it adds
// limits, second attempts and messages.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "source/bytes.h"

namespace wheelscope {

// Addresses on the web: what is one, how it is shown, where a link leads.
bool is_url(std::string_view text);

// Without the name and password in front of the host, and without a query, which may be a key too.
std::string shown_url(const std::string& url);

// The host, without its port.
std::string host_of(const std::string& url);

// What `link` on a page stands for.
Result<std::string> resolve_url(const std::string& page, const std::string& link);

// Bytes of a file: from an offset on, or the last ones.
struct ByteRange {
  std::uint64_t length = 0;
  std::optional<std::uint64_t> offset = {};  // none: at the end
};

struct HttpRequest {
  std::string url;
  std::string accept = {};  // content types
  std::optional<ByteRange> range = {};
  std::uint64_t most = 0;  // bytes that are taken; a longer answer is an error
  // Takes the body instead of HttpAnswer::body, from its first byte again after a second attempt.
  std::function<bool(std::uint64_t offset, std::string_view part)> sink = {};
};

struct HttpAnswer {
  std::string url;        // that answered, after redirects
  std::string type;       // text/html, without its parameters
  std::string validator;  // changes when the file does: its ETag, else when it was changed
  bool partial = false;   // the range that was asked for; otherwise the server gave the whole file,
                          // and of that nothing was taken if a range was asked for
  std::uint64_t offset = 0;           // of a range
  std::optional<std::uint64_t> size;  // of the whole file
  std::string body;
};

class Http {
 public:
  // `timeout`: seconds in which a connection must come about, and a server must send something.
  explicit Http(int timeout = 15);
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;
  ~Http();

  // From several threads at once; connections are kept. What may pass (a broken connection, a
  // server that is overloaded) is tried again.
  Result<HttpAnswer> get(const HttpRequest& request);

  // Starts a request without waiting: a get() of the same one, later, takes up its answer.
  void expect(const HttpRequest& request);

  // Bytes of all answers so far, those that nobody took up included.
  std::uint64_t received() const;

 private:
  class Exchange;
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace wheelscope
