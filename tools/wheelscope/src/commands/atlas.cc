// `wheelscope atlas`: judges the projects of a list for every torch. Each answer is cached under
// everything it depends on, so an interrupted run continues where it stopped, and a later run reads
// only new files.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "commands/atlas_reader.h"
#include "commands/fitter.h"
#include "packaging/requirement.h"
#include "report/json.h"
#include "source/system.h"
#include "text/text.h"

namespace wheelscope {
namespace {

constexpr std::uint64_t largest_cache = std::uint64_t{1} << 30;
constexpr unsigned projects_at_once = 4;

// Returns the names of a list, normalised. An error quotes a word that is not a project's name.
Result<std::vector<std::string>> read_list(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& line : split(TRY(read_text(path)), '\n')) {
    for (const auto& word : words_of(std::string_view(line).substr(0, line.find('#')))) {
      const auto& name = names.emplace_back(canonical_name(word));
      if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != name.npos)
        return fail(0, path + ": '" + word + "' is no project's name");
    }
  }
  return names;
}

// Collects what a maintainer must act on: promises that the newest release does not keep, and
// versions of torch for which it has no wheel.
Item to_act_on(const Json& project, const Json& torches) {
  Item item;
  item.facts.file = project.at("name");
  if (project.at("releases").empty()) return item;
  const auto& release = project.at("releases").front();
  item.facts.file += "-" + release.at("version").get<std::string>();
  for (const auto& claim : release.at("false_claims"))
    item.findings.push_back({.id = claim.at("id"), .what = claim.at("what")});
  auto is_said = [&](const Json& minor) {
    return std::ranges::any_of(release.at("false_claims"), [&](const Json& claim) {
      return contains(claim.at("torches"), minor);
    });
  };
  for (const auto& torch : torches) {
    const auto& minor = torch.at("minor");
    std::string reason;
    bool serves = false;
    for (const auto& cell : release.at("cells")) {
      if (cell.at("torch") != minor) continue;
      serves |= cell.at("verdict") == "works" || cell.at("verdict") == "depends";
      if (reason.empty() && cell.at("reason").is_string()) reason = cell.at("reason");
    }
    if (serves || is_said(minor)) continue;
    item.findings.push_back({.id = "no-wheel",
                             .level = Finding::Level::warning,
                             .what = "no wheel of it works with torch " + minor.get<std::string>() +
                                     (reason.empty() ? "" : ": " + reason)});
  }
  return item;
}

// Tells for each torch whether some wheel of a release finds all its symbols; nothing for a release
// that is not bound to torch's C++ ABI.
std::optional<BoundRelease> bound_release(const Json& release, const Json& torches) {
  BoundRelease binding{.loads = std::vector<bool>(torches.size())};
  for (const auto& file : release.at("files")) {
    if (file.at("torch_abi") == "stable") return std::nullopt;
    const auto symbols = file.at("known_symbols").get<std::uint64_t>();
    if (!symbols) continue;
    binding.symbols = binding.symbols ? std::min(binding.symbols, symbols) : symbols;
    for (std::size_t i = 0; i < torches.size(); ++i)
      if (file.at("lacking").at(torches[i].at("minor").get<std::string>()) == 0)
        binding.loads[i] = true;
  }
  if (!binding.symbols) return std::nullopt;
  return binding;
}

// Adds a forecast for the next torch to each release, and a back test of the forecasts to the
// atlas.
void add_forecast(Json& atlas) {
  const auto& torches = atlas.at("torches");
  std::vector<BoundRelease> newest;  // of each project
  for (const auto& project : atlas.at("projects")) {
    if (project.at("releases").empty()) continue;
    if (auto binding = bound_release(project.at("releases").front(), torches))
      newest.push_back(std::move(*binding));
  }
  const auto last = torches.size() - 1;
  const Forecast forecast(newest, last);
  for (auto& project : atlas.at("projects")) {
    for (auto& release : project.at("releases")) {
      const auto binding = bound_release(release, torches);
      release["forecast"] = nullptr;
      if (!binding || !binding->loads[last] || !forecast.of(*binding).loaded) continue;
      release["forecast"] = to_json(forecast.of(*binding));
      release["forecast"]["expected"] = forecast.expects_break(*binding);
    }
  }
  auto classes = Json::array(), tests = Json::array();
  for (std::size_t i = 0; i < forecast_classes.size(); ++i) {
    classes.push_back(to_json(forecast.classes[i]));
    classes.back()["symbols"] = forecast_classes[i];
  }
  for (std::size_t i = 2; i < torches.size(); ++i) {
    const auto test = back_test(newest, i);
    tests.push_back({{"torch", torches[i].at("minor")},
                     {"all", to_json(test.all)},
                     {"expected", to_json(test.expected)}});
  }
  atlas["forecast"] = {{"classes", std::move(classes)}, {"back_test", std::move(tests)}};
}

class Atlas {
 public:
  Atlas(const Options& options, Streams streams)
      : options_(options),
        streams_(streams),
        index_{index_settings(options), Http(options.timeout),
               Cache(options.output_folder + "/cache", largest_cache)} {}

  Result<void> read_torches() {
    torches_ = TRY(read_torch_tables(index_, options_.torch, atlas_architecture));
    if (torches_.empty()) return fail(0, "the index has no wheel of torch " + options_.torch);
    const auto program = TRY(Source::map("/proc/self/exe"));
    judges_ = std::to_string(std::hash<std::string_view>()(program.bytes().text()));
    for (const auto& torch : torches_) judges_ += " " + torch.version;
    return {};
  }

  Json read(const std::vector<std::string>& names) {
    std::vector<Json> projects(names.size());
    std::atomic<std::size_t> next = 0, done = 0;
    auto work = [&] {
      AtlasReader reader(index_, torches_);
      for (std::size_t i = next++; i < names.size(); i = next++) {
        projects[i] = project(names[i], reader);
        show_progress(++done, names.size());
      }
    };
    {
      std::vector<std::jthread> others;
      for (unsigned i = 1; i < std::min<std::size_t>(projects_at_once, names.size()); ++i)
        others.emplace_back(work);
      work();
    }
    auto torches = Json::array();
    for (const auto& torch : torches_)
      torches.push_back({{"minor", torch.minor},
                         {"version", torch.version},
                         {"cuda", or_null(torch.cuda)},
                         {"builds", torch.builds()},
                         {"pythons", torch.pythons}});
    Json atlas{{"torches", std::move(torches)}, {"projects", std::move(projects)}};
    add_forecast(atlas);
    return atlas;
  }

 private:
  Json project(const std::string& name, AtlasReader& reader) {
    const auto releases = newest_releases(index_, name, options_.releases);
    if (!releases) return to_json({.name = name, .problem = releases.error().what});
    auto key = name + "\n" + judges_;
    for (const auto& release : *releases) {
      key += "\n" + release.spelled + " " + release.sdist;
      for (const auto& wheel : release.wheels)
        key += " " + wheel.file.name + "#" + wheel.file.sha256;
    }
    if (const auto known = index_.cache.find(key)) return Json::parse(*known);
    AtlasProject project{.name = name};
    for (const auto& release : *releases) project.releases.push_back(reader.read(release));
    if (project.releases.empty()) project.problem = "the index has no release of it";
    const auto json = to_json(project);
    const bool whole = std::ranges::all_of(project.releases, [](const AtlasRelease& release) {
      return std::ranges::all_of(release.files, &std::string::empty, &AtlasFile::problem);
    });
    if (whole) index_.cache.store(key, json.dump(-1, ' ', false, Json::error_handler_t::replace));
    return json;
  }

  void show_progress(std::size_t done, std::size_t all) {
    if (!isatty(STDERR_FILENO)) return;
    streams_.err << "\r\x1b[K" << done << " of " << all << (done == all ? "\n" : "") << std::flush;
  }

  const Options& options_;
  Streams streams_;
  PackageIndex index_;
  std::vector<TorchTable> torches_;
  std::string judges_;  // what every answer depends on besides the files: this program, and torch
};

}  // namespace

int atlas(const Options& options, Streams streams) {
  std::vector<std::string> names;
  for (const auto& path : options.paths) {
    auto listed = read_list(path);
    if (!listed) return complain(listed.error(), streams);
    std::ranges::move(*listed, std::back_inserter(names));
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  if (options.torch != "newest" && !parse_specifiers(options.torch))
    return bad_usage("--torch " + options.torch + ": neither `newest` nor versions such as >=2.14",
                     streams);
  Atlas atlas(options, streams);
  if (const auto torches = atlas.read_torches(); !torches)
    return complain(torches.error(), streams);
  const auto json = atlas.read(names);
  auto pages = atlas_site(json);
  pages.push_back({"atlas.json", json_document("atlas", json)});
  for (const auto& [path, text] : pages) {
    if (const auto written = write_file(options.output_folder + "/" + path, text); !written)
      return complain(written.error(), streams);
  }
  std::vector<Item> items;
  std::uint64_t wheels = 0, size = 0, read = 0, unread = 0;
  for (const auto& project : json.at("projects")) {
    items.push_back(to_act_on(project, json.at("torches")));
    unread += !project.at("problem").is_null();
    for (const auto& release : project.at("releases")) {
      for (const auto& file : release.at("files")) {
        ++wheels;
        size += file.at("size").get<std::uint64_t>();
        read += file.at("read").get<std::uint64_t>();
        unread += !file.at("problem").is_null();
      }
    }
  }
  if (options.sarif) {
    streams.out << sarif_document(items);
    if (in_github_actions()) streams.err << annotations(items);
    const bool any =
        std::ranges::any_of(items, [](const Item& item) { return !item.findings.empty(); });
    return unread ? unreadable : any ? has_findings : clean;
  }
  streams.out << counted(names.size(), "project") << " in " << printable(options.output_folder)
              << "/index.html: " << counted(wheels, "wheel") << " of " << human_size(size) << ", "
              << human_size(read) << " read"
              << (unread ? "; " + std::to_string(unread) + " projects or wheels could not be" : "")
              << "\n";
  return unread ? unreadable : clean;
}

}  // namespace wheelscope
