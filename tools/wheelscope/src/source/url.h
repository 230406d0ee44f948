// Addresses on the web: what is one, how it is shown, where a link leads.
#pragma once

#include <string>
#include <string_view>

#include "source/bytes.h"

namespace wheelscope {

bool is_url(std::string_view text);

// Without the name and password in front of the host, and without a query, which may be a key too.
std::string shown_url(const std::string& url);

// The host, without its port.
std::string host_of(const std::string& url);

// What `link` on a page stands for.
Result<std::string> resolve_url(const std::string& page, const std::string& link);

}  // namespace wheelscope
