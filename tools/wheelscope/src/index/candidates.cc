// Asks each index for the project's page, and sorts what is on them.
#include "index/candidates.h"

#include <algorithm>
#include <filesystem>

#include "packaging/claims.h"
#include "text/text.h"

namespace wheelscope {
namespace {

constexpr std::uint64_t longest_page = 64 << 20;

HttpRequest page_of(const std::string& index, const std::string& project) {
  return {.url = index + (index.ends_with('/') ? "" : "/") + canonical_name(project) + "/",
          .accept = index_page_types,
          .most = longest_page};
}

// Returns a folder's files, or those that a page links to.
Result<std::vector<IndexFile>> read_links(Http& http, const std::string& address) {
  if (is_url(address) && !address.starts_with("file:")) {
    if (address.ends_with(".whl")) return std::vector{IndexFile{base_name(address), address}};
    const auto answer =
        TRY(http.get({.url = address, .accept = index_page_types, .most = longest_page}));
    return parse_index_page(answer.body, answer.type, answer.url);
  }
  const auto folder = local_path(address);
  std::error_code error;
  if (folder.ends_with(".whl") && std::filesystem::is_regular_file(folder, error))
    return std::vector{IndexFile{base_name(folder),
                                 local_file + std::filesystem::absolute(folder, error).string()}};
  std::vector<IndexFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    files.push_back({entry.path().filename().string(),
                     local_file + std::filesystem::absolute(entry.path()).string()});
  if (error)
    return fail(0, "'" + folder + "' is no folder of files that can be read: " + error.message());
  std::ranges::sort(files, {}, &IndexFile::name);
  return files;
}

Result<std::vector<IndexFile>> read_page(Http& http, const std::string& index,
                                         const std::string& project) {
  if (!is_url(index))
    return fail(0, "'" + shown_url(index) +
                       "' is no index: its address starts "
                       "with https:// or http://");
  const auto answer = TRY(http.get(page_of(index, project)));
  return parse_index_page(answer.body, answer.type, answer.url);
}

}  // namespace

std::optional<Candidate> wheel_of(const IndexFile& file, const std::string& project) {
  auto claims = parse_wheel_name(file.name);
  if (!claims || canonical_name(claims->name) != canonical_name(project) ||
      !claims->variant.empty())
    return std::nullopt;
  auto version = parse_version(claims->version);
  if (!version) return std::nullopt;
  claims->requires_python = file.requires_python;
  return Candidate{file, std::move(*claims), std::move(*version)};
}

std::optional<Version> version_of_sdist(const std::string& name) {
  for (const std::string_view suffix : {".tar.gz", ".zip"}) {
    if (!name.ends_with(suffix)) continue;
    const auto stem = name.substr(0, name.size() - suffix.size());
    const auto dash = stem.rfind('-');
    if (dash != stem.npos) return parse_version(stem.substr(dash + 1));
  }
  return std::nullopt;
}

bool names_version(const std::vector<Specifier>& specifiers) {
  return std::ranges::any_of(specifiers, [](const Specifier& clause) {
    return clause.sign == "===" || (clause.sign == "==" && !clause.bound.ends_with(".*"));
  });
}

bool names_prerelease(const std::vector<Specifier>& specifiers) {
  return std::ranges::any_of(specifiers, [](const Specifier& clause) {
    const auto version = parse_version(clause.bound);
    return version && version->is_prerelease();
  });
}

void expect_candidates(PackageIndex& index, const std::string& project) {
  for (const auto& address : indexes_of(index.from)) {
    if (is_url(address)) index.http.expect(page_of(address, project));
  }
}

Result<std::vector<IndexFile>> find_files(PackageIndex& index, const std::string& project,
                                          std::vector<std::string>& notes) {
  std::vector<IndexFile> files;
  std::string problem;
  auto add = [&](Result<std::vector<IndexFile>> page) {
    if (page) {
      std::ranges::move(*page, std::back_inserter(files));
    } else {
      if (!problem.empty()) notes.push_back(problem);
      problem = page.error().what;
    }
  };
  const auto indexes = indexes_of(index.from);
  if (indexes.empty() && index.from.find_links.empty())
    return fail(0, "--no-index was given, and no --find-links to look in");
  for (const auto& address : indexes) add(read_page(index.http, address, project));
  for (const auto& place : index.from.find_links) add(read_links(index.http, place));
  if (files.empty() && !problem.empty()) return fail(0, problem);
  if (!problem.empty()) notes.push_back(problem);
  std::vector<Specifier> limits;
  for (const auto& limit : index.from.limits) {
    const auto clauses = parse_specifiers(limit.specifiers);
    if (canonical_name(limit.name) == canonical_name(project) && clauses)
      limits.insert(limits.end(), clauses->begin(), clauses->end());
  }
  const auto excluded = limits.empty() ? 0 : std::erase_if(files, [&](const IndexFile& file) {
    const auto wheel = wheel_of(file, project);
    const auto version = wheel ? wheel->version : version_of_sdist(file.name);
    return version && !fulfils(*version, limits);
  });
  if (excluded > 0)
    notes.push_back("constraints exclude " + counted(excluded, "file") + " of " + project);
  return files;
}

Result<Candidates> find_candidates(PackageIndex& index, const Requirement& requirement,
                                   std::vector<std::string>& notes) {
  const auto specifiers = parse_specifiers(requirement.specifiers);
  if (!specifiers) return fail(0, "'" + requirement.specifiers + "' is no version specifier");
  const auto files = TRY(find_files(index, requirement.name, notes));
  Candidates found;
  std::optional<Version> newest_sdist;
  const bool withdrawn = names_version(*specifiers);
  for (const auto& file : files) {
    if (file.yanked && !withdrawn) continue;
    if (const auto version = version_of_sdist(file.name)) {
      if (fulfils(*version, *specifiers) && (!newest_sdist || *newest_sdist < *version)) {
        newest_sdist = version;
        found.sdist = file.name;
      }
      continue;
    }
    auto wheel = wheel_of(file, requirement.name);
    if (!wheel) continue;
    if (fulfils(wheel->version, *specifiers))
      found.wheels.push_back(std::move(*wheel));
    else
      ++found.other_versions;
  }
  const bool only_prereleases = std::ranges::all_of(
      found.wheels, [](const Candidate& wheel) { return wheel.version.is_prerelease(); });
  if (!index.from.prereleases && !only_prereleases && !names_prerelease(*specifiers))
    std::erase_if(found.wheels,
                  [](const Candidate& wheel) { return wheel.version.is_prerelease(); });
  std::ranges::stable_sort(found.wheels, std::greater{}, &Candidate::version);
  return found;
}

}  // namespace wheelscope
