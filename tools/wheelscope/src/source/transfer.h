// One attempt at a request: tells libcurl what to fetch, and checks that the answer is what was
// requested.
#pragma once

#include <curl/curl.h>

#include <array>
#include <optional>
#include <string>

#include "source/http.h"

namespace wheelscope {

// Settings that all requests of a program share.
struct Connecting {
  int timeout = 0;           // see Http
  std::string certificates;  // file of trusted certificates; empty: libcurl's choice
};

class Transfer {
 public:
  Transfer(HttpRequest request, const Connecting& connecting);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer();

  CURL* handle() const { return handle_; }

  // Returns the result when libcurl is done; nothing if another attempt may succeed, and error()
  // says why.
  std::optional<Result<HttpAnswer>> outcome(CURLcode code);
  const std::string& error() const { return error_; }

 private:
  enum class Stopped { no, whole_file, wrong_range, too_long, by_sink };

  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);

  void prepare(const Connecting& connecting);
  void read_header(std::string_view line);
  bool take(std::string_view part);
  bool start();
  bool stop(Stopped why, std::string what = {});
  Result<HttpAnswer> fail(const std::string& what) const;

  HttpRequest request_;
  CURL* handle_;
  std::string certificates_;  // the file of them
  curl_slist* headers_ = nullptr;
  std::array<char, CURL_ERROR_SIZE> told_{};
  long status_ = 0;
  std::uint64_t taken_ = 0, expected_ = 0;
  Stopped stopped_ = Stopped::no;
  std::string error_, content_range_;
  HttpAnswer answer_;
};

}  // namespace wheelscope
