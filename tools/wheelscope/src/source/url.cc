// Takes addresses apart, and has libcurl join them.
#include "source/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

namespace wheelscope {

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
    return std::unexpected(Error{0, "'" + shown_url(link) + "' is no link"});
  std::string resolved(whole);
  curl_free(whole);
  if (!is_url(resolved))
    return std::unexpected(Error{0, "'" + shown_url(link) + "' leads to no web server"});
  return resolved;
}

}  // namespace wheelscope
