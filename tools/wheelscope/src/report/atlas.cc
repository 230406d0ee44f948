// Writes the atlas as JSON and as plain pages: tables, one style sheet, and a search that hides
// rows. Texts from an index are escaped wherever they are inserted.
#include "report/json.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "report/text.h"
#include "tables/embedded.h"
#include "text/text.h"

namespace wheelscope {
namespace {

std::string html(std::string_view text) {
  std::string escaped;
  for (const char c : printable(text))
    escaped += c == '&'   ? "&amp;"
               : c == '<' ? "&lt;"
               : c == '>' ? "&gt;"
               : c == '"' ? "&quot;"
                          : std::string(1, c);
  return escaped;
}

std::string text_of(const Json& json, const char* key) {
  const auto& value = json.at(key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::vector<std::string> texts_of(const Json& json, const char* key) {
  return json.at(key).get<std::vector<std::string>>();
}

std::string page(const std::string& title, const std::string& root, const std::string& body) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         html(title) + "</title>\n<link rel=\"stylesheet\" href=\"" + root +
         "atlas.css\">\n</head>\n<body>\n<main>\n" + body + "</main>\n</body>\n</html>\n";
}

// Returns a table that scrolls if it is wider than the screen.
std::string scrolling_table(const std::string& label, const std::vector<std::string>& columns,
                            const std::string& rows) {
  std::string head;
  for (const auto& column : columns) head += "<th scope=\"col\">" + column + "</th>";
  return "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"" + html(label) +
         "\">\n<table>\n<thead><tr>" + head + "</tr></thead>\n<tbody>\n" + rows +
         "</tbody>\n</table>\n</div>\n";
}

// Shortens 2.10, 2.11, 2.12, 2.14 to "2.10 - 2.12, 2.14", for neighbours in `all`.
std::string ranges(const std::vector<std::string>& some, const std::vector<std::string>& all) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto has = [&](std::size_t at) { return contains(some, all[at]); };
    if (!has(i)) continue;
    auto last = i;
    while (last + 1 < all.size() && has(last + 1)) ++last;
    parts.push_back(last == i ? all[i] : all[i] + " \u2013 " + all[last]);
    i = last;
  }
  return joined(parts);
}

class Site {
 public:
  explicit Site(const Json& atlas) : atlas_(atlas) {
    for (const auto& torch : atlas.at("torches")) {
      torches_.push_back(text_of(torch, "minor"));
      for (const auto& build : texts_of(torch, "builds")) {
        if (!contains(builds_, build)) builds_.push_back(build);
      }
      pythons_[torches_.back()] = texts_of(torch, "pythons");
    }
  }

  std::vector<AtlasPage> pages() const {
    std::vector<AtlasPage> all{{"index.html", index()},
                               {"atlas.css", std::string(embedded::atlas_style())},
                               {"atlas.js", std::string(embedded::atlas_search())}};
    for (const auto& project : atlas_.at("projects"))
      all.push_back({"project/" + text_of(project, "name") + ".html", project_page(project)});
    return all;
  }

 private:
  // Adds a column for each build of torch.
  std::vector<std::string> with_builds(std::vector<std::string> columns) const {
    for (const auto& build : builds_) columns.push_back(build == "cpu" ? "CPU" : "CUDA " + build);
    return columns;
  }

  // Returns the torch versions with which a release works on some Python.
  std::vector<std::string> working(const Json& release, const std::string& build) const {
    std::vector<std::string> found;
    for (const auto& cell : release.at("cells")) {
      if (cell.at("cuda") == build && cell.at("verdict") == "works" &&
          (found.empty() || found.back() != text_of(cell, "torch")))
        found.push_back(text_of(cell, "torch"));
    }
    return found;
  }

  static std::string abi(const Json& release) {
    std::string abi = "none", min;
    for (const auto& file : release.at("files")) {
      const auto one = text_of(file, "torch_abi");
      if (one == "none" || abi == "cxx") continue;
      abi = one;
      min = text_of(file, "torch_min");
    }
    if (release.at("files").empty()) return "sources only";
    if (abi == "cxx") return "C++";
    return abi == "stable" ? "stable" + (min.empty() ? "" : ", " + min + " or later")
                           : "no symbols of torch";
  }

  // Returns the share of similar releases that broke: 20 %.
  static std::string risk(const Json& release) {
    const auto& forecast = release.at("forecast");
    if (forecast.is_null()) return {};
    const auto percent =
        100 * forecast.at("broke").get<double>() / forecast.at("loaded").get<double>();
    return std::to_string(std::lround(percent)) + " % risk";
  }

  std::string index() const {
    auto columns = with_builds({"project", "release", "ABI of torch"});
    columns.insert(columns.end(), {"the next torch", "false claims", "wheels"});
    std::string rows;
    for (const auto& project : atlas_.at("projects")) {
      const auto name = text_of(project, "name");
      rows += "<tr><th scope=\"row\"><a href=\"project/" + html(name) + ".html\">" + html(name) +
              "</a></th>";
      if (project.at("releases").empty()) {
        rows += "<td colspan=\"" + std::to_string(builds_.size() + 5) + "\">" +
                html(text_of(project, "problem")) + "</td></tr>\n";
        continue;
      }
      const auto& release = project.at("releases").front();
      rows +=
          "<td>" + html(text_of(release, "version")) + "</td><td>" + html(abi(release)) + "</td>";
      for (const auto& build : builds_) {
        const auto works = ranges(working(release, build), torches_);
        rows += works.empty() ? "<td class=\"none\">none</td>"
                              : "<td class=\"works\">" + html(works) + "</td>";
      }
      const auto claims = release.at("false_claims").size();
      rows += "<td>" + risk(release) + "</td><td>" + (claims ? std::to_string(claims) : "") +
              "</td><td>" + release.at("wheels").dump() + "</td></tr>\n";
    }
    return page(
        "Extensions of torch on PyPI", "",
        "<h1>Extensions of torch on PyPI</h1>\n<p>With which torch the newest release of each "
        "project "
        "loads, for some Python, on Linux with an x86-64 processor: judged from the bytes of its "
        "wheels by wheelscope, not from their names. A page for each project has the reasons. "
        "Under \u201cthe next torch\u201d "
        "is how often a new torch broke releases with about as many C++ symbols of it.</p>\n"
        "<p><label for=\"search\">Search</label> <input id=\"search\" type=\"search\" "
        "autocomplete=\"off\"> <span id=\"count\" role=\"status\">" +
            counted(atlas_.at("projects").size(), "project") + "</span></p>\n" +
            scrolling_table("Projects", columns, rows) + "<script src=\"atlas.js\"></script>\n");
  }

  // Returns one row per torch and one column per build; reasons are numbers of a list below.
  std::string matrix(const Json& release, const std::string& label) const {
    std::map<std::pair<std::string, std::string>, std::vector<const Json*>> cells;
    for (const auto& cell : release.at("cells"))
      cells[{text_of(cell, "torch"), text_of(cell, "cuda")}].push_back(&cell);
    std::vector<std::string> reasons;
    std::string rows;
    for (auto torch = torches_.rbegin(); torch != torches_.rend(); ++torch) {
      rows += "<tr><th scope=\"row\">" + html(*torch) + "</th>";
      for (const auto& build : builds_) {
        const auto found = cells.find({*torch, build});
        if (found == cells.end()) {
          rows += "<td class=\"none\">no such build</td>";
          continue;
        }
        rows += "<td>";
        for (const auto* cell : found->second) {
          const auto verdict = text_of(*cell, "verdict");
          const auto reason = text_of(*cell, "reason");
          const auto pythons = texts_of(*cell, "pythons");
          rows += "<span class=\"" + verdict + "\">" + verdict;
          if (found->second.size() > 1) rows += " on " + html(ranges(pythons, pythons_.at(*torch)));
          if (!reason.empty() && verdict != "sdist") {
            const auto known = std::ranges::find(reasons, reason);
            const auto number = known - reasons.begin() + 1;
            if (known == reasons.end()) reasons.push_back(reason);
            rows += " (" + std::to_string(number) + ")";
          }
          rows += "</span> ";
        }
        rows += "</td>";
      }
      rows += "</tr>\n";
    }
    auto text = scrolling_table(label, with_builds({"torch"}), rows);
    if (reasons.empty()) return text;
    text += "<ol>\n";
    for (const auto& reason : reasons) text += "<li>" + html(reason) + "</li>\n";
    return text + "</ol>\n";
  }

  static std::string gpus(const Json& file) {
    if (!file.at("uses_device_code").get<bool>()) return "no device code seen";
    if (file.at("gpus").empty()) return "not read";
    std::vector<std::string> served;
    for (const auto& gpu : file.at("gpus")) {
      if (gpu.at("served") != "no")
        served.push_back(text_of(gpu, "capability") + (gpu.at("served") == "jit" ? " by PTX" : ""));
    }
    return served.empty() ? "none" : joined(served);
  }

  static std::string files(const Json& release) {
    std::string rows;
    for (const auto& file : release.at("files")) {
      const auto problem = text_of(file, "problem");
      rows += "<tr><th scope=\"row\">" + html(text_of(file, "file")) + "</th><td>" +
              human_size(file.at("size").get<std::uint64_t>()) + "</td><td>" +
              (problem.empty() ? human_size(file.at("read").get<std::uint64_t>()) : html(problem)) +
              "</td><td>" + html(text_of(file, "platform")) + "</td><td>" +
              text_of(file, "python_abi") + "</td><td>" +
              html(joined(texts_of(file, "requires_torch"))) + "</td><td>" + html(gpus(file)) +
              "</td></tr>\n";
    }
    return scrolling_table("Wheels of " + text_of(release, "version") + " for x86-64",
                           {"wheel", "size", "read", "deserves", "Python ABI", "requires", "GPUs"},
                           rows);
  }

  // Returns what keeps a release from the stable ABI, and what a port to it would save.
  static std::string port(const Json& release) {
    const Json* most = nullptr;
    for (const auto& file : release.at("files")) {
      if (!most || most->at("cxx_symbols") < file.at("cxx_symbols")) most = &file;
    }
    if (!most || most->at("cxx_symbols") == 0) return {};
    const auto count = most->at("cxx_symbols").get<std::uint64_t>();
    const auto wheels = release.at("linux_wheels").get<std::uint64_t>();
    const auto left = release.at("architectures").get<std::uint64_t>();
    auto text = "<p>" + counted(count, "C++ symbol") +
                " of torch bind it to the torch that it was built for. On the stable ABI, " +
                (wheels > left ? "and without Python's C API, " + counted(left, "wheel") +
                                     " for Linux would do in place of " + std::to_string(wheels)
                               : std::string("the same wheels would serve every later torch")) +
                ".</p>\n<details><summary>The symbols</summary>\n<ul>\n";
    for (const auto& symbol : texts_of(*most, "cxx_symbols_first"))
      text += "<li><code>" + html(symbol) + "</code></li>\n";
    if (count > most->at("cxx_symbols_first").size())
      text += "<li>and " + std::to_string(count - most->at("cxx_symbols_first").size()) +
              " more</li>\n";
    return text + "</ul>\n</details>\n";
  }

  std::string project_page(const Json& project) const {
    const auto name = text_of(project, "name");
    auto body = "<p><a href=\"../index.html\">All projects</a></p>\n<h1>" + html(name) + "</h1>\n";
    if (const auto problem = text_of(project, "problem"); !problem.empty())
      body += "<p>" + html(problem) + "</p>\n";
    for (const auto& release : project.at("releases")) {
      const auto version = text_of(release, "version");
      body += "<h2>" + html(version) + "</h2>\n<p>" +
              counted(release.at("wheels").get<std::uint64_t>(), "wheel") +
              (release.at("sdist").is_null() ? "" : " and sources") +
              "; ABI of torch: " + html(abi(release)) + ".</p>\n";
      if (!release.at("false_claims").empty()) {
        body += "<h3>What it promises and does not keep</h3>\n<ul>\n";
        for (const auto& claim : release.at("false_claims"))
          body += "<li>" + html(text_of(claim, "what")) + "</li>\n";
        body += "</ul>\n";
      }
      body += "<h3>Where it loads</h3>\n" + matrix(release, name + " " + version);
      if (const auto& forecast = release.at("forecast"); !forecast.is_null())
        body += "<p>It loads with torch " + html(torches_.back()) +
                ". Of releases with about as many C++ symbols of torch, " +
                forecast.at("broke").dump() + " of " + forecast.at("loaded").dump() +
                " did not load with the next torch, the last five times.</p>\n";
      if (!release.at("files").empty()) body += "<h3>Wheels for x86-64</h3>\n" + files(release);
      body += port(release);
    }
    return page(name, "../", body);
  }

  const Json& atlas_;
  std::vector<std::string> torches_, builds_;
  std::map<std::string, std::vector<std::string>> pythons_;
};

}  // namespace

constexpr std::size_t most_symbols = 50;  // that are named

Json to_json(const AtlasFile& file) {
  auto symbols = Json::array();
  if (file.torch.abi == TorchAbi::cxx) {
    for (std::size_t i = 0; i < std::min(most_symbols, file.torch.symbols.size()); ++i)
      symbols.push_back(demangle(file.torch.symbols[i]));
  }
  auto gpus = Json::array();
  for (const auto& gpu : file.gpus)
    gpus.push_back({{"capability", gpu.capability}, {"served", name_of(gpu.served)}});
  return {{"file", file.file},
          {"size", file.size},
          {"read", file.read},
          {"problem", or_null(file.problem)},
          {"torch_abi", name_of(file.torch.abi)},
          {"torch_min", field(file.torch.min)},
          {"cxx_symbols", file.torch.abi == TorchAbi::cxx ? file.torch.symbols.size() : 0},
          {"cxx_symbols_first", std::move(symbols)},
          {"known_symbols", file.known_symbols},
          {"lacking", file.lacking},
          {"requires_torch", file.requires_torch},
          {"python_abi", name_of(file.python.abi)},
          {"platform", or_null(file.platform)},
          {"uses_device_code", file.uses_device_code},
          {"gpus", std::move(gpus)}};
}

Json to_json(const AtlasCell& cell) {
  const bool sources = cell.reason.why == Why::only_sources;
  return {{"torch", cell.torch},
          {"cuda", cell.cuda},
          {"pythons", cell.pythons},
          {"verdict", sources ? "sdist" : name_of(cell.fits)},
          {"obstacle", name_of(cell.obstacle)},
          {"reason", or_null(reason_text(cell.reason))}};
}

FIELDS(AtlasClaim, id, what, torches)
FIELDS(AtlasRelease, version, wheels, linux_wheels, architectures, sdist, files, false_claims,
       cells)
FIELDS(AtlasProject, name, problem, releases)
FIELDS(Breaks, loaded, broke)

std::vector<AtlasPage> atlas_site(const Json& atlas) {
  return Site(atlas).pages();
}

}  // namespace wheelscope
