// Reads pages of both kinds.
#include "index/candidates.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "source/http.h"
#include "text/text.h"

namespace wheelscope {

const char* const index_page_types =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, "
    "text/html;q=0.01";

namespace {

using Json = nlohmann::json;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// True for a value other than null and false: some keys hold a boolean or an object of hashes.
bool is_set(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null() && *found != false;
}

Result<std::vector<IndexFile>> parse_json(std::string_view text, const std::string& url) {
  const auto page = Json::parse(text, nullptr, false);
  if (!page.is_object() || !page.contains("files") || !page["files"].is_array())
    return fail(0, shown_url(url) + ": the page is no list of files in JSON");
  std::vector<IndexFile> files;
  for (const auto& entry : page["files"]) {
    if (!entry.is_object()) continue;
    const auto link = resolve_url(url, text_of(entry, "url"));
    if (!link) continue;
    IndexFile file{
        .name = text_of(entry, "filename"),
        .url = link->substr(0, link->find('#')),
        .requires_python = text_of(entry, "requires-python"),
        .yanked = is_set(entry, "yanked"),
        .has_metadata = is_set(entry, "core-metadata") || is_set(entry, "data-dist-info-metadata")};
    if (const auto hashes = entry.find("hashes"); hashes != entry.end() && hashes->is_object())
      file.sha256 = lower(text_of(*hashes, "sha256"));
    if (const auto size = entry.find("size"); size != entry.end() && size->is_number_unsigned())
      file.size = size->get<std::uint64_t>();
    files.push_back(std::move(file));
  }
  return files;
}

// Replaces entities: &gt;=3.8 becomes >=3.8.
std::string without_entities(std::string_view text) {
  static const std::map<std::string_view, char> names = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    constexpr std::size_t longest = 8;
    const auto end = text[i] == '&' ? text.substr(i, longest).find(';') : text.npos;
    if (end == text.npos) {
      plain += text[i];
      continue;
    }
    const auto name = text.substr(i + 1, end - 1);
    int code = 0;
    if (const auto found = names.find(name); found != names.end()) {
      code = static_cast<unsigned char>(found->second);
    } else if (name.starts_with('#')) {
      const bool hexadecimal = name.starts_with("#x");
      const auto digits = name.substr(hexadecimal ? 2 : 1);
      std::from_chars(digits.data(), digits.data() + digits.size(), code, hexadecimal ? 16 : 10);
    }
    if (code > 0 && code < 0x80) {
      plain += static_cast<char>(code);
      i += end;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// Returns the attributes of a tag, given the text after its name.
std::map<std::string, std::string> attributes_of(std::string_view tag) {
  std::map<std::string, std::string> attributes;
  constexpr std::string_view blanks = " \t\r\n\f/";
  for (std::size_t at = tag.find_first_not_of(blanks); at < tag.size();
       at = tag.find_first_not_of(blanks, at)) {
    const auto end = std::min(tag.find_first_of(" \t\r\n\f/=", at + 1), tag.size());
    const auto name = lower(tag.substr(at, end - at));
    at = end;
    std::string value;
    if (at < tag.size() && tag[at] == '=') {
      ++at;
      const char quote = at < tag.size() ? tag[at] : '\0';
      const bool quoted = quote == '"' || quote == '\'';
      const auto stop = std::min(
          quoted ? tag.find(quote, at + 1) : tag.find_first_of(" \t\r\n\f", at), tag.size());
      value = without_entities(tag.substr(at + (quoted ? 1 : 0), stop - at - (quoted ? 1 : 0)));
      at = stop + (quoted ? 1 : 0);
    }
    attributes.try_emplace(name, value);
  }
  return attributes;
}

// Returns where a tag ends; a > in quotes does not end it.
std::size_t end_of_tag(std::string_view text, std::size_t at) {
  for (char quote = 0; at < text.size(); ++at) {
    if (quote) {
      if (text[at] == quote) quote = 0;
    } else if (text[at] == '"' || text[at] == '\'') {
      quote = text[at];
    } else if (text[at] == '>') {
      return at;
    }
  }
  return text.npos;
}

std::vector<IndexFile> parse_html(std::string_view text, const std::string& url) {
  std::vector<IndexFile> files;
  for (std::size_t at = 0; (at = text.find('<', at)) != text.npos; ++at) {
    if (at + 2 >= text.size() || (text[at + 1] != 'a' && text[at + 1] != 'A') ||
        std::string_view(" \t\r\n\f").find(text[at + 2]) == std::string_view::npos)
      continue;
    const auto end = end_of_tag(text, at);
    if (end == text.npos) break;
    const auto attributes = attributes_of(text.substr(at + 2, end - at - 2));
    const auto close = std::min(text.find("</", end), text.size());
    auto get = [&](const char* name) {
      const auto found = attributes.find(name);
      return found == attributes.end() ? std::string() : found->second;
    };
    const auto link = resolve_url(url, get("href"));
    if (attributes.contains("href") && link) {
      IndexFile file{.name = without_entities(trim(text.substr(end + 1, close - end - 1))),
                     .url = link->substr(0, link->find('#')),
                     .requires_python = get("data-requires-python"),
                     .yanked = attributes.contains("data-yanked"),
                     .has_metadata = (attributes.contains("data-core-metadata") &&
                                      get("data-core-metadata") != "false") ||
                                     attributes.contains("data-dist-info-metadata")};
      constexpr std::string_view mark = "#sha256=";
      if (const auto hash = link->find(mark); hash != link->npos)
        file.sha256 = lower(link->substr(hash + mark.size()));
      files.push_back(std::move(file));
    }
    at = end;
  }
  return files;
}

}  // namespace

Result<std::vector<IndexFile>> parse_index_page(std::string_view text, std::string_view type,
                                                const std::string& url) {
  if (type.ends_with("json")) return parse_json(text, url);
  if (type.ends_with("html")) return parse_html(text, url);
  return fail(0, shown_url(url) + ": the page is neither JSON nor HTML but '" + std::string(type) +
                     "'; is this a package index?");
}

}  // namespace wheelscope
