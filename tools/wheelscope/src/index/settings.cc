// Reads the settings of pip and uv in the order of their precedence, and lists of requirements.
#include "index/settings.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "packaging/requirement.h"
#include "source/http.h"
#include "source/system.h"
#include "tables/toml.h"
#include "text/text.h"

namespace wheelscope {
namespace {

constexpr const char* pypi = "https://pypi.org/simple/";

std::string config_folder() {
  const auto folder = environment_variable("XDG_CONFIG_HOME");
  return folder.empty() ? environment_variable("HOME") + "/.config" : folder;
}

// Returns pip's files, highest precedence first.
std::vector<std::string> pip_files(const std::string& environment) {
  const auto chosen = environment_variable("PIP_CONFIG_FILE");
  if (chosen == "/dev/null") return {};
  std::vector<std::string> files;
  if (!chosen.empty()) files.push_back(chosen);
  if (!environment.empty()) files.push_back(environment + "/pip.conf");
  const auto home = environment_variable("HOME");
  files.insert(files.end(), {config_folder() + "/pip/pip.conf", home + "/.pip/pip.conf"});
  auto folders = environment_variable("XDG_CONFIG_DIRS");
  for (const auto& folder : split(folders.empty() ? "/etc/xdg" : folders, ':'))
    files.push_back(folder + "/pip/pip.conf");
  files.emplace_back("/etc/pip.conf");
  return files;
}

// Takes over the settings that are not set yet.
void add(const PipSettings& weaker, PipSettings& settings) {
  if (settings.index.empty()) settings.index = weaker.index;
  if (settings.extra.empty()) settings.extra = weaker.extra;
  if (settings.find_links.empty()) settings.find_links = weaker.find_links;
  if (settings.constraints.empty()) settings.constraints = weaker.constraints;
  if (settings.proxy.empty()) settings.proxy = weaker.proxy;
  settings.no_index |= weaker.no_index;
  settings.prereleases |= weaker.prereleases;
}

bool is_true(const std::string& text) {
  const auto word = lower(text);
  return word == "1" || word == "true" || word == "yes" || word == "on";
}

// Sets one option by pip's name for it; false if the name is unknown.
bool set_option(const std::string& name, const std::string& value, PipSettings& settings) {
  auto append = [&](std::vector<std::string>& list) {
    for (auto& word : words_of(value)) list.push_back(std::move(word));
  };
  if (name == "index-url")
    settings.index = value;
  else if (name == "extra-index-url")
    append(settings.extra);
  else if (name == "find-links")
    append(settings.find_links);
  else if (name == "constraint")
    append(settings.constraints);
  else if (name == "no-index")
    settings.no_index = value.empty() || is_true(value);
  else if (name == "pre")
    settings.prereleases = value.empty() || is_true(value);
  else if (name == "proxy")
    settings.proxy = value;
  else
    return false;
  return true;
}

// Returns UV_INDEX_MY_COMPANY for uv_index_my-company.
std::string variable_name(std::string text) {
  for (auto& c : text)
    c = c >= 'a' && c <= 'z'                    ? static_cast<char>(c - 'a' + 'A')
        : is_digit(c) || (c >= 'A' && c <= 'Z') ? c
                                                : '_';
  return text;
}

// Puts UV_INDEX_NAME_USERNAME and _PASSWORD into the address of the index NAME.
std::string with_credentials(const std::string& url, const std::string& name) {
  const auto key = variable_name("UV_INDEX_" + name);
  const auto user = environment_variable((key + "_USERNAME").c_str());
  const auto password = environment_variable((key + "_PASSWORD").c_str());
  const auto host = url.find("://");
  if (name.empty() || user.empty() + password.empty() == 2 || host == url.npos) return url;
  auto encoded = [](const std::string& text) {
    std::string result;
    for (const char c : text) {
      const bool plain = is_alphanumeric(c) || std::string_view("-._~").contains(c);
      result += plain ? std::string(1, c) : "%" + hexadecimal(std::string_view(&c, 1));
    }
    return result;
  };
  return url.substr(0, host + 3) + encoded(user) + ":" + encoded(password) + "@" +
         url.substr(host + 3);
}

// Returns the address from NAME=URL or URL.
std::string named_url(const std::string& text) {
  const auto equals = text.find('=');
  return equals < text.find("://")
             ? with_credentials(text.substr(equals + 1), text.substr(0, equals))
             : text;
}

PipSettings uv_variables() {
  PipSettings uv{.index = named_url(environment_variable("UV_DEFAULT_INDEX")),
                 .extra = words_of(environment_variable("UV_INDEX")),
                 .find_links = split(environment_variable("UV_FIND_LINKS"), ','),
                 .constraints = words_of(environment_variable("UV_CONSTRAINT")),
                 .no_index = is_true(environment_variable("UV_NO_INDEX")),
                 .prereleases = environment_variable("UV_PRERELEASE") == "allow"};
  std::erase(uv.find_links, "");
  if (uv.index.empty()) uv.index = environment_variable("UV_INDEX_URL");
  if (uv.extra.empty()) uv.extra = words_of(environment_variable("UV_EXTRA_INDEX_URL"));
  for (auto& url : uv.extra) url = named_url(url);
  return uv;
}

// Adds uv's files, highest precedence first: the project's, the user's, the system's.
void add_uv_files(PipSettings& settings) {
  auto add_file = [&](const std::string& path, bool pyproject) {
    const auto text = read_text(path);
    if (!text) return false;
    const auto parsed = parse_uv_toml(*text, pyproject);
    if (parsed) add(*parsed, settings);
    return true;
  };
  if (is_true(environment_variable("UV_NO_CONFIG"))) return;
  if (const auto chosen = environment_variable("UV_CONFIG_FILE"); !chosen.empty()) {
    add_file(chosen, false);
    return;
  }
  std::error_code error;
  for (auto folder = std::filesystem::current_path(error); !error; folder = folder.parent_path()) {
    if (add_file((folder / "uv.toml").string(), false) ||
        add_file((folder / "pyproject.toml").string(), true) || folder == folder.root_path())
      break;
  }
  add_file(config_folder() + "/uv/uv.toml", false);
  add_file("/etc/uv/uv.toml", false);
}

Result<std::vector<std::string>> members_of(const toml::table& groups, const std::string& wanted,
                                            int depth = 0) {
  constexpr int deepest = 16;
  if (depth > deepest) return fail(0, "group '" + wanted + "' includes itself");
  std::vector<std::string> found, names;
  for (const auto& [name, members] : groups) {
    names.emplace_back(name.str());
    if (canonical_name(name.str()) != canonical_name(wanted)) continue;
    const auto* list = members.as_array();
    if (!list) return fail(0, "group '" + wanted + "' is no list");
    for (const auto& member : *list) {
      if (const auto text = member.value<std::string>()) {
        found.push_back(*text);
        continue;
      }
      const auto* table = member.as_table();
      const auto inner = table ? (*table)["include-group"].value<std::string>() : std::nullopt;
      if (!inner) return fail(0, "group '" + wanted + "' has a member that is no requirement");
      for (auto& text : TRY(members_of(groups, *inner, depth + 1)))
        found.push_back(std::move(text));
    }
    return found;
  }
  return fail(0, "there is no group '" + wanted +
                     "'; the groups are: " + (names.empty() ? "none" : joined(names)));
}

// Puts variables in place of ${NAME}, as pip does; one that is not set stays.
std::string with_variables(std::string text) {
  for (auto at = text.find("${"); at != text.npos; at = text.find("${", at + 1)) {
    const auto end = text.find('}', at);
    if (end == text.npos) break;
    const auto name = text.substr(at + 2, end - at - 2);
    const auto value = environment_variable(name.c_str());
    if (name == variable_name(name) && !value.empty()) text.replace(at, end + 1 - at, value);
  }
  return text;
}

// Joins lines that end in a backslash, and leaves out comments and empty lines.
std::vector<std::string> lines_of_requirements(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::vector<std::string> lines;
  std::string whole;
  auto end_line = [&] {
    auto at = whole.find('#');
    while (at != whole.npos && at > 0 && whole[at - 1] != ' ' && whole[at - 1] != '\t')
      at = whole.find('#', at + 1);
    const auto content = trim(std::string_view(whole).substr(0, at));
    if (!content.empty()) lines.push_back(with_variables(std::string(content)));
    whole.clear();
  };
  for (auto& line : split(text, '\n')) {
    if (line.ends_with('\r')) line.pop_back();
    const bool is_comment = trim(line).starts_with('#');
    const bool goes_on = line.ends_with('\\') && !is_comment;
    whole += (is_comment ? " " : "") + line.substr(0, line.size() - goes_on);
    if (!goes_on) end_line();
  }
  end_line();
  return lines;
}

}  // namespace

PipSettings parse_pip_conf(std::string_view text) {
  std::string section, key;
  std::map<std::string, std::string> values[2];  // of [global] and [install]
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
    if ((section != "global" && section != "install") || key.empty()) continue;
    auto& place = values[section == "install"][key];
    if (!goes_on) place.clear();
    place += (place.empty() ? "" : " ") + std::string(value);
  }
  PipSettings settings;
  values[1].merge(values[0]);  // the command's section takes precedence
  for (const auto& [name, value] : values[1]) {
    if (!trim(value).empty()) set_option(name, std::string(trim(value)), settings);
  }
  return settings;
}

Result<PipSettings> parse_uv_toml(std::string_view text, bool pyproject) {
  const auto file = TRY(parse_toml(text));
  PipSettings settings;
  const auto root = pyproject ? file["tool"]["uv"] : toml::node_view<const toml::node>(file);
  for (const auto& table : {root["pip"], root}) {
    if (settings.index.empty()) settings.index = table["index-url"].value_or<std::string>("");
    for (auto [name, list] :
         {std::pair{"extra-index-url", &settings.extra}, {"find-links", &settings.find_links}}) {
      if (const auto* array = table[name].as_array()) {
        for (const auto& one : *array) list->push_back(one.value_or<std::string>(""));
      }
    }
    settings.no_index |= table["no-index"].value_or(false);
    settings.prereleases |= table["prerelease"].value_or<std::string>("") == "allow";
  }
  if (const auto* indexes = root["index"].as_array()) {
    for (const auto& entry : *indexes) {
      const auto* index = entry.as_table();
      if (!index || (*index)["explicit"].value_or(false)) continue;
      const auto url = with_credentials((*index)["url"].value_or<std::string>(""),
                                        (*index)["name"].value_or<std::string>(""));
      if ((*index)["format"].value_or<std::string>("") == "flat")
        settings.find_links.push_back(url);
      else if ((*index)["default"].value_or(false))
        settings.index = url;
      else
        settings.extra.push_back(url);
    }
  }
  std::erase(settings.extra, "");
  std::erase(settings.find_links, "");
  return settings;
}

Result<std::vector<std::string>> read_requirements(const std::string& path, PipSettings& settings,
                                                   std::vector<std::string>& notes, int depth) {
  constexpr int deepest = 16;
  if (depth > deepest) return fail(0, path + " includes itself");
  std::vector<std::string> requirements;
  for (const auto& line : lines_of_requirements(TRY(read_text(path)))) {
    std::string_view content = line;
    if (!content.starts_with('-')) {
      content = trim(content.substr(0, content.find(" --")));  // --hash, --config-settings
      if (content.find("git+") != content.npos)
        notes.push_back(path + ": '" + std::string(content) + "' is not judged");
      else
        requirements.emplace_back(content);
      continue;
    }
    const bool is_short = !content.starts_with("--");  // -r FILE, -rFILE
    const auto end = is_short ? std::min<std::size_t>(2, content.size())
                              : std::min(content.find_first_of(" \t="), content.size());
    auto option = std::string(content.substr(0, end));
    auto value = std::string(trim(content.substr(end)));
    if (value.starts_with('=')) value = trim(std::string_view(value).substr(1));
    if (value.size() > 1 && (value[0] == '\'' || value[0] == '"') && value.back() == value[0])
      value = value.substr(1, value.size() - 2);
    const std::map<std::string, std::string> long_names{{"-i", "--index-url"},
                                                        {"-f", "--find-links"},
                                                        {"-c", "--constraint"},
                                                        {"-r", "--requirement"}};
    if (const auto known = long_names.find(option); known != long_names.end())
      option = known->second;
    auto beside = [&] {  // a path is relative to the file that has it
      const auto folder = folder_of(path);
      return value.starts_with('/') || is_url(value) || folder.empty() ? value
                                                                       : folder + "/" + value;
    };
    if (option == "--requirement") {
      std::ranges::move(TRY(read_requirements(beside(), settings, notes, depth + 1)),
                        std::back_inserter(requirements));
    } else if (option == "--constraint") {
      settings.constraints.push_back(beside());
    } else if (option == "--find-links") {
      std::error_code error;
      settings.find_links.push_back(std::filesystem::exists(beside(), error) ? beside() : value);
    } else if (!set_option(option.substr(std::min(option.find_first_not_of('-'), option.size())),
                           value, settings)) {
      notes.push_back(path + ": '" + std::string(content) + "' is not judged");
    }
  }
  return requirements;
}

PipSettings configured_settings(PipSettings settings, const std::string& environment) {
  PipSettings pip;
  for (const auto* name :
       {"index-url", "extra-index-url", "find-links", "constraint", "no-index", "pre", "proxy"}) {
    const auto key = variable_name("PIP_" + std::string(name));
    if (const auto value = environment_variable(key.c_str()); !value.empty())
      set_option(name, value, pip);
  }
  add(pip, settings);
  for (const auto& file : pip_files(environment)) {
    if (const auto text = read_text(file)) add(parse_pip_conf(*text), settings);
  }
  add(uv_variables(), settings);
  add_uv_files(settings);
  return settings;
}

std::vector<std::string> indexes_of(const PipSettings& settings) {
  if (settings.no_index) return {};
  std::vector<std::string> addresses{settings.index.empty() ? pypi : settings.index};
  for (const auto& url : settings.extra) {
    if (!contains(addresses, url)) addresses.push_back(url);
  }
  return addresses;
}

Result<void> read_limits(PipSettings& settings, const MarkerEnvironment& environment) {
  std::vector<std::string> notes;
  PipSettings ignored;
  for (const auto& file : settings.constraints) {
    for (const auto& text : TRY(read_requirements(file, ignored, notes))) {
      auto limit = parse_requirement(text);
      if (holds(limit.marker, environment) == true) settings.limits.push_back(std::move(limit));
    }
  }
  return {};
}

Result<std::vector<std::string>> project_dependencies(std::string_view text) {
  const auto file = TRY(parse_toml(text));
  std::vector<std::string> found;
  if (const auto* list = file["project"]["dependencies"].as_array()) {
    for (const auto& one : *list) found.push_back(one.value_or<std::string>(""));
  }
  return found;
}

Result<std::vector<std::string>> dependency_group(std::string_view text, const std::string& group) {
  const auto file = TRY(parse_toml(text));
  const auto* groups = file["dependency-groups"].as_table();
  return members_of(groups ? *groups : toml::table(), group);
}

}  // namespace wheelscope
