// Reads the settings of pip and uv in the order in which they read them.
#include "index/settings.h"

#include <algorithm>
#include <cstdlib>

#include "source/files.h"
#include "tables/toml.h"
#include "text/text.h"

namespace wheelscope {
namespace {

constexpr const char* pypi = "https://pypi.org/simple/";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  constexpr std::string_view blanks = " \t\r\n";
  for (auto at = text.find_first_not_of(blanks); at != text.npos;
       at = text.find_first_not_of(blanks, at)) {
    const auto end = std::min(text.find_first_of(blanks, at), text.size());
    found.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return found;
}

std::string config_folder() {
  const auto folder = variable("XDG_CONFIG_HOME");
  return folder.empty() ? variable("HOME") + "/.config" : folder;
}

// The strongest file first.
std::vector<std::string> pip_files(const std::string& environment) {
  const auto chosen = variable("PIP_CONFIG_FILE");
  if (chosen == "/dev/null") return {};
  std::vector<std::string> files;
  if (!chosen.empty()) files.push_back(chosen);
  if (!environment.empty()) files.push_back(environment + "/pip.conf");
  const auto home = variable("HOME");
  files.insert(files.end(), {config_folder() + "/pip/pip.conf", home + "/.pip/pip.conf"});
  auto folders = variable("XDG_CONFIG_DIRS");
  for (const auto& folder : split(folders.empty() ? "/etc/xdg" : folders, ':'))
    files.push_back(folder + "/pip/pip.conf");
  files.emplace_back("/etc/pip.conf");
  return files;
}

// Takes what is not set yet.
void add(const PipSettings& weaker, PipSettings& settings) {
  if (settings.index.empty()) settings.index = weaker.index;
  if (settings.extra.empty()) settings.extra = weaker.extra;
}

}  // namespace

PipSettings parse_pip_conf(std::string_view text) {
  std::string section, key;
  std::string values[2][2];  // of [global] and [install]: index-url, extra-index-url
  for (const auto& line : split(text, '\n')) {
    const auto content = trim(line);
    if (content.empty() || content.starts_with('#') || content.starts_with(';')) continue;
    const bool goes_on = line.starts_with(' ') || line.starts_with('\t');
    std::string_view value = content;
    if (!goes_on) {
      if (content.starts_with('[')) {
        section = content.substr(1, content.find(']') - 1);
        key.clear();
        continue;
      }
      const auto equals = content.find_first_of("=:");
      if (equals == content.npos) continue;
      key = lower(trim(content.substr(0, equals)));
      std::ranges::replace(key, '_', '-');
      value = trim(content.substr(equals + 1));
    }
    const bool main = key == "index-url", extra = key == "extra-index-url";
    if ((section != "global" && section != "install") || (!main && !extra)) continue;
    auto& place = values[section == "install"][extra];
    if (!goes_on) place.clear();
    place += " " + std::string(value);
  }
  PipSettings settings;
  for (const auto& values_of_section :
       {values[1], values[0]}) {  // the command's section is stronger
    if (settings.index.empty()) settings.index = trim(values_of_section[0]);
    if (settings.extra.empty()) settings.extra = words(values_of_section[1]);
  }
  return settings;
}

Result<PipSettings> parse_uv_toml(std::string_view text) try {
  const auto root = toml::parse(text);
  PipSettings settings;
  for (const auto& table : {root["pip"], toml::node_view<const toml::node>(root)}) {
    if (settings.index.empty()) settings.index = table["index-url"].value_or<std::string>("");
    if (const auto* list = table["extra-index-url"].as_array()) {
      for (const auto& one : *list) settings.extra.push_back(one.value_or<std::string>(""));
    }
  }
  if (const auto* indexes = root["index"].as_array()) {
    for (const auto& entry : *indexes) {
      const auto* index = entry.as_table();
      if (!index) continue;
      const auto url = (*index)["url"].value_or<std::string>("");
      if ((*index)["default"].value_or(false))
        settings.index = url;
      else
        settings.extra.push_back(url);
    }
  }
  std::erase(settings.extra, "");
  return settings;
} catch (const toml::parse_error& error) {
  return std::unexpected(Error{error.source().begin.line, std::string(error.description())});
}

std::vector<std::string> configured_indexes(const std::string& environment) {
  PipSettings settings{.index = variable("PIP_INDEX_URL"),
                       .extra = words(variable("PIP_EXTRA_INDEX_URL"))};
  for (const auto& file : pip_files(environment)) {
    if (const auto text = read_text(file)) add(parse_pip_conf(*text), settings);
  }
  PipSettings uv{.index = variable("UV_DEFAULT_INDEX"), .extra = words(variable("UV_INDEX"))};
  if (uv.index.empty()) uv.index = variable("UV_INDEX_URL");
  if (uv.extra.empty()) uv.extra = words(variable("UV_EXTRA_INDEX_URL"));
  for (auto& url : uv.extra) {  // NAME=URL
    const auto equals = url.find('=');
    if (equals < url.find("://")) url.erase(0, equals + 1);
  }
  add(uv, settings);
  for (const auto& file : {config_folder() + "/uv/uv.toml", std::string("/etc/uv/uv.toml")}) {
    const auto text = read_text(file);
    if (!text) continue;
    if (const auto parsed = parse_uv_toml(*text)) add(*parsed, settings);
  }
  std::vector<std::string> indexes{settings.index.empty() ? pypi : settings.index};
  indexes.insert(indexes.end(), settings.extra.begin(), settings.extra.end());
  return indexes;
}

}  // namespace wheelscope
