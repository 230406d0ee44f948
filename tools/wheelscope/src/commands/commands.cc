// Runs the commands: files in, facts, one judge, one report out.
#include "commands/commands.h"

#include <algorithm>
#include <cstdlib>

#include "commands/dump.h"
#include "commands/read_item.h"
#include "findings/policy.h"
#include "report/json.h"
#include "report/sarif.h"
#include "report/text.h"
#include "source/files.h"

namespace wheelscope {

int complain(const Error& error, Streams streams) {
  streams.err << "wheelscope: " << printable(error.what) << "\n";
  return unreadable;
}

namespace {

// Every file that the paths stand for, read; what cannot be is complained about and the rest still
// read.
struct Items {
  std::vector<Item> items;
  int code = clean;
};

Items read_items(const std::vector<std::string>& paths, const ScanOptions& scan,
                 const Options& options, Streams streams) {
  Items read;
  for (const auto& path : paths) {
    const auto files = expand_path(path);
    if (!files) {
      read.code = complain(files.error(), streams);
      continue;
    }
    if (files->empty())
      read.code = complain({0, path + ": no wheel and no ELF file in this folder"}, streams);
    for (const auto& file : *files) {
      if (auto item = read_item(file, scan, options.json ? Texts::as_they_are : Texts::printable))
        read.items.push_back(std::move(*item));
      else
        read.code = complain(item.error(), streams);
    }
  }
  return read;
}

int report_items(const Items& read, const Options& options, Streams streams,
                 std::string (*text)(const Item&, const Style&)) {
  auto code = read.code;
  auto json = Json::array();
  for (const auto& item : read.items) {
    if (std::ranges::any_of(item.findings, matters)) code = std::max<int>(code, has_findings);
    if (options.json)
      json.push_back(to_json(item));
    else
      streams.out << text(item, options.style);
  }
  if (options.json) streams.out << json_document("items", std::move(json));
  return code;
}

int dump_code(const std::string& path, const std::string& folder, const Options& options,
              Streams streams) {
  const bool ptx = options.ptx;
  const auto file = Source::map(path);
  if (!file) return complain(file.error(), streams);
  ProblemList problems;
  int code = clean;
  std::size_t count = 0;
  auto use = [&](const ExtractedCode& extracted) {
    ++count;
    if (folder.empty()) {
      streams.out << (ptx ? "// " + extracted.file_name + "\n" + extracted.contents + "\n"
                          : extracted.file_name + "  " + std::to_string(extracted.contents.size()) +
                                " bytes\n");
    } else if (auto written = write_file(folder + "/" + extracted.file_name, extracted.contents);
               !written) {
      code = complain(written.error(), streams);
    }
  };
  const auto kind = ptx ? CodeKind::ptx : CodeKind::sass;
  if (auto done = extract_code({path, file->bytes()}, kind, use, problems); !done)
    return complain({0, path + ": " + done.error().what}, streams);
  std::vector<Finding> findings;
  findings.reserve(problems.listed.size());
  for (const auto& problem : problems.listed) findings.push_back(finding_of(problem));
  for (auto& finding : findings) {
    finding.place = printable(finding.place);
    finding.what = printable(finding.what);
  }
  streams.err << findings_text(findings, options.style);
  streams.err << path << ": " << count << (ptx ? " PTX texts" : " cubins")
              << (folder.empty() ? "" : " written to " + folder) << "\n";
  return std::max<int>(code, findings.empty() ? clean : has_findings);
}

}  // namespace

int show(const Options& options, Streams streams) {
  return report_items(read_items(options.paths, {}, options, streams), options, streams,
                      options.by_size ? sizes_text : show_text);
}

int check(const Options& options, Streams streams) {
  // PyPI's limit, which it raises for projects that ask.
  Policy policy{.size_limit_mb = 100, .levels = {{"size-limit", "warning"}}};
  if (!options.policy.empty()) {
    const auto text = read_text(options.policy);
    if (!text) return complain(text.error(), streams);
    auto parsed = parse_policy(*text);
    if (!parsed) {
      streams.err << "wheelscope: " << options.policy << ": " << parsed.error().what << "\n";
      return usage;
    }
    policy = std::move(*parsed);
  }
  auto read = read_items(options.paths, {.build_prefixes = policy.build_paths}, options, streams);
  for (auto& item : read.items) item.findings = check(item, policy);
  const char* github = std::getenv("GITHUB_ACTIONS");
  if (github && std::string_view(github) == "true") streams.err << annotations(read.items);
  if (!options.sarif) return report_items(read, options, streams, check_text);
  streams.out << sarif_document(read.items);
  const bool found = std::ranges::any_of(
      read.items, [](const Item& item) { return std::ranges::any_of(item.findings, matters); });
  return std::max<int>(read.code, found ? has_findings : clean);
}

int cover(const Options& options, Streams streams) {
  const auto text = read_text(options.matrix);
  if (!text) return complain(text.error(), streams);
  const auto cells = parse_matrix(*text);
  if (!cells) {
    streams.err << "wheelscope: " << options.matrix << ": " << cells.error().what << "\n";
    return usage;
  }
  const auto read = read_items(options.paths, {}, options, streams);
  const auto verdicts = cover(read.items, *cells);
  if (options.json) {
    auto json = Json::array();
    for (const auto& verdict : verdicts) json.push_back(to_json(verdict));
    streams.out << json_document("cells", std::move(json));
  } else {
    streams.out << cover_text(verdicts, options.style);
  }
  const bool unserved =
      std::ranges::any_of(verdicts, [](const auto& verdict) { return verdict.wheel.empty(); });
  return std::max<int>(read.code, unserved ? has_findings : clean);
}

int link(const Options& options, Streams streams) {
  auto wheel = read_items({options.paths.front()}, {.symbols = true}, options, streams);
  const auto providers = read_items({options.paths.begin() + 1, options.paths.end()},
                                    {.symbols = true}, options, streams);
  if (wheel.items.size() != 1 || providers.code == unreadable) {
    if (wheel.items.size() > 1)
      complain({0, options.paths.front() + ": the first path must be one wheel or ELF file"},
               streams);
    return unreadable;
  }
  const auto report = link(wheel.items.front(), providers.items);
  if (options.json)
    streams.out << json_document("link", to_json(report));
  else
    streams.out << options.style.bold(wheel.items.front().facts.file) << "\n"
                << link_text(report, options.style);
  return report.missing.empty() && report.missing_libraries.empty() ? clean : has_findings;
}

int diff(const Options& options, Streams streams) {
  const auto read = read_items(options.paths, {.symbols = true}, options, streams);
  if (read.items.size() != 2)
    return read.code ? read.code : complain({0, "diff compares two wheels or files"}, streams);
  const auto changes = diff(read.items[0], read.items[1]);
  if (options.json) {
    auto json = Json::array();
    for (const auto& change : changes) json.push_back(to_json(change));
    streams.out << json_document("changes", std::move(json));
  } else {
    streams.out << diff_text(changes, options.style);
  }
  return changes.empty() ? clean : has_findings;
}

int dump(const Options& options, Streams streams) {
  if (!options.symbols) {
    int code = clean;
    std::vector<std::string> files;
    for (const auto& path : options.paths) {
      if (const auto found = expand_path(path))
        files.insert(files.end(), found->begin(), found->end());
      else
        code = complain(found.error(), streams);
    }
    std::map<std::string, int> uses;  // of each folder: files of several inputs may be named alike
    for (const auto& file : files) {
      auto folder = options.output_folder;
      if (!folder.empty() && files.size() > 1) {
        folder += "/" + base_name(file);
        if (const auto use = ++uses[folder]; use > 1) folder += "." + std::to_string(use);
      }
      code = std::max(code, dump_code(file, folder, options, streams));
    }
    return code;
  }
  const auto read = read_items(options.paths, {.symbols = true}, options, streams);
  auto json = Json::array();
  for (const auto& item : read.items) {
    if (options.json)
      json.push_back(symbols_to_json(item));
    else
      streams.out << symbols_text(item);
  }
  if (options.json) streams.out << json_document("items", std::move(json));
  return read.code;
}

}  // namespace wheelscope
