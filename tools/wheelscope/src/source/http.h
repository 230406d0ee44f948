// Fetches texts and ranges of files from web servers with libcurl, to which it adds limits, second
// attempts and messages.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "source/bytes.h"

namespace wheelscope {

// --- Addresses on the web: recognising, showing and resolving them.
bool is_url(std::string_view text);

// The start of the address of a file on the disk.
inline const std::string local_file = "file://";

// Returns the path in file:///a%20b#sha256=..., or whatever else it is given.
std::string local_path(const std::string& address);

// Returns the address without user name, password and query, which may be a key too.
std::string shown_url(const std::string& url);

// Returns the host without its port.
std::string host_of(const std::string& url);

// Resolves a link on a page.
Result<std::string> resolve_url(const std::string& page, const std::string& link);

// A range of a file: from an offset on, or the last bytes.
struct ByteRange {
  std::uint64_t length = 0;
  std::optional<std::uint64_t> offset = {};  // none: the last bytes
};

struct HttpRequest {
  std::string url;
  std::string accept = {};  // content types
  std::optional<ByteRange> range = {};
  std::uint64_t most = 0;  // bytes; a longer answer is an error
  // Receives the body instead of HttpAnswer::body; a second attempt starts again at the first byte.
  std::function<bool(std::uint64_t offset, std::string_view part)> sink = {};
};

struct HttpAnswer {
  std::string url;           // after redirects
  std::string type;          // text/html, without its parameters
  std::string validator;     // changes with the file: its ETag, else its time of change
  bool partial = false;      // true: the requested range; false: the server sent the whole file, of
                             // which nothing was taken if a range was requested
  std::uint64_t offset = 0;  // of the range
  std::optional<std::uint64_t> size;  // of the whole file
  std::string body;
};

class Http {
 public:
  // `timeout`: seconds within which a connection must be made and a server must send something.
  explicit Http(int timeout = 15);
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;
  ~Http();

  // May be called from several threads at once. Connections are reused. Temporary failures (a
  // broken connection, an overloaded server) are tried again.
  Result<HttpAnswer> get(const HttpRequest& request);

  // Starts a request without waiting; a later get() of the same request takes up its answer.
  void expect(const HttpRequest& request);

  // Returns the bytes of all answers so far, including those that nobody took up.
  std::uint64_t received() const;

 private:
  class Exchange;
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace wheelscope
