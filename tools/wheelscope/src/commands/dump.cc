// `wheelscope dump`: takes PTX and cubins out of wheels, and lists symbols.

#include <algorithm>
#include <cstdio>
#include <functional>

#include "commands/inputs.h"
#include "facts/wheel.h"
#include "readers/archive.h"
#include "readers/fatbin.h"
#include "report/json.h"
#include "report/text.h"
#include "source/system.h"

namespace wheelscope {
namespace {

// One piece of device code, decompressed.
struct ExtractedCode {
  std::string file_name;  // pkg/library.so.0001.sm_90a.cubin
  std::string contents;
};

std::string numbered(std::size_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%04zu", number);
  return text;
}

class Extractor {
 public:
  Extractor(CodeKind kind, const std::function<void(const ExtractedCode&)>& use, Allowance& memory,
            ProblemList& problems)
      : kind_(kind), use_(use), memory_(memory), problems_(problems) {}

  void extract(const std::string& path, Bytes file) {
    std::size_t number = 0;
    if (looks_like_archive(file)) {
      const auto done =
          for_each_member(file, [&](Bytes member) { extract_from(path, member, number); });
      if (!done) problems_.add("archive-broken", path, done.error());
    } else {
      extract_from(path, file, number);
    }
  }

 private:
  void extract_from(const std::string& path, Bytes file, std::size_t& number) {
    Loan loan(memory_);
    Fatbin fatbin;
    if (looks_like_elf(file)) {
      const auto elf = read_elf(file, loan);
      if (!elf) return problems_.add("elf-broken", path, elf.error());
      fatbin = read_device_code(*elf, file, loan);
    } else if (auto loose = read_loose_code(path, file, loan)) {
      fatbin = std::move(*loose);
    }
    for (const auto& problem : fatbin.problems) problems_.add("fatbin-broken", path, problem);
    for (const auto& code : fatbin.codes) {
      if (code.kind == kind_) extract_one(path, code, ++number);
    }
  }

  void extract_one(const std::string& path, const DeviceCode& code, std::size_t number) {
    Loan loan(memory_);
    auto contents = decompress(code, loan);
    if (!contents) return problems_.add("fatbin-broken", path, contents.error());
    const bool ptx = kind_ == CodeKind::ptx;
    if (ptx) contents->resize(std::min(contents->find('\0'), contents->size()));
    use_({path + "." + numbered(number) + "." + spelled(kind_, code.target) +
              (ptx ? ".ptx" : ".cubin"),
          std::move(*contents)});
  }

  CodeKind kind_;
  const std::function<void(const ExtractedCode&)>& use_;
  Allowance& memory_;
  ProblemList& problems_;
};

// Extracts all PTX or all cubins of a wheel or file, one at a time, for `use`. Code that cannot be
// decompressed becomes a problem.
Result<void> extract_code(const WheelInput& input, CodeKind kind,
                          const std::function<void(const ExtractedCode&)>& use,
                          ProblemList& problems) {
  const auto budget = Allowance::contents_for(input.bytes.size());
  Allowance memory(budget);
  Extractor extractor(kind, use, memory, problems);
  if (looks_like_elf(input.bytes) || looks_like_archive(input.bytes) ||
      looks_like_fatbin(input.bytes) || (input.path.ends_with(".ptx"))) {
    extractor.extract(base_name(input.path), input.bytes);
    return {};
  }
  const auto archive = TRY(read_zip(input.bytes));
  for (const auto& member : archive.members) {
    if (!member.readable || member.is_folder()) continue;
    Loan loan(memory);
    const auto room = room_for(member, input.bytes.size());
    if (!room || (room == Room::memory && member.method != 0 && !loan.take(member.size))) {
      problems.add({.id = "limit",
                    .place = member.name,
                    .what = "inflates to more than a wheel of this size justifies"});
      continue;
    }
    if (const auto data = read_member(input.bytes, member, *room))
      extractor.extract(member.name, data->bytes());
    else
      problems.add(data.error());
  }
  return {};
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
    std::map<std::string, int> uses;  // of folders: several inputs may share a name
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
