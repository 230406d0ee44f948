// Takes requirements apart.
#include "packaging/requirement.h"

#include "text/text.h"

namespace wheelscope {

Requirement parse_requirement(std::string_view text) {
  Requirement requirement;
  text = trim(text);
  const auto name = text.substr(0, text.find_first_of(" \t\n;<>=!~([@"));
  requirement.name = name;
  text = trim(text.substr(name.size()));
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    for (const auto& extra : split(text.substr(1, end == text.npos ? end : end - 1), ',')) {
      if (const auto word = trim(extra); !word.empty()) requirement.extras.emplace_back(word);
    }
    text = end == text.npos ? std::string_view() : trim(text.substr(end + 1));
  }
  if (text.starts_with('@')) {  // a URL may have a semicolon: the marker's has a blank before it
    const auto end = std::min(text.find(" ;"), text.size());
    requirement.url = trim(text.substr(1, end - 1));
    requirement.marker = trim(text.substr(std::min(end + 2, text.size())));
    return requirement;
  }
  const auto end = std::min(text.find(';'), text.size());
  auto specifiers = trim(text.substr(0, end));
  if (specifiers.starts_with('(') && specifiers.ends_with(')'))
    specifiers = trim(specifiers.substr(1, specifiers.size() - 2));
  requirement.specifiers = specifiers;
  requirement.marker = trim(text.substr(std::min(end + 1, text.size())));
  return requirement;
}

std::string canonical_name(std::string_view name) {
  std::string text;
  for (const char c : lower(name)) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (!separator)
      text += c;
    else if (!text.ends_with('-'))
      text += '-';
  }
  return text;
}

}  // namespace wheelscope
