// Reads a wheel: members in parallel, each inflated, hashed and, if it is an ELF file, turned into
// facts; then verdicts.
#include "wheel.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include "claims.h"
#include "cuda.h"
#include "library.h"
#include "parallel.h"
#include "platform.h"
#include "python_abi.h"
#include "torch_abi.h"
#include "version.h"

namespace wheelscope {
namespace {

// What one member gives.
struct MemberFacts {
  bool read = false;
  std::string hash;
  std::optional<LibraryFacts> library;
  std::string text;  // of the dist-info files that matter
  std::vector<Finding> findings;
};

bool is_dist_info(std::string_view name, std::string_view file) {
  const auto slash = name.find('/');
  return slash != name.npos && name.substr(0, slash).ends_with(".dist-info") &&
         name.substr(slash + 1) == file;
}

bool is_signature(std::string_view name) {
  return is_dist_info(name, "RECORD.jws") || is_dist_info(name, "RECORD.p7s");
}

bool is_described_here(std::string_view name) {
  return is_dist_info(name, "RECORD") || is_dist_info(name, "WHEEL") ||
         is_dist_info(name, "METADATA");
}

Finding zip_finding(const ZipProblem& problem) {
  return {.id = problem.id,
          .place = problem.member,
          .what = problem.error.what,
          .fix = "build the wheel again with a standard tool",
          .offset = problem.error.offset};
}

MemberFacts read_facts(const WheelInput& input, const ZipMember& member,
                       const ScanOptions& options) {
  MemberFacts facts;
  const auto data = read_member(input.bytes, member);
  if (data) {
    const auto contents = data->bytes();
    facts.read = true;
    facts.hash = record_hash(contents.span());
    if (looks_like_elf(contents))
      facts.library = read_library(member.name, contents, options, facts.findings);
    else if (is_described_here(member.name))
      facts.text = contents.text();
  } else {
    facts.findings.push_back(zip_finding(data.error()));
  }
  return facts;
}

std::vector<MemberFacts> read_all(const WheelInput& input, const std::vector<ZipMember>& members,
                                  const ScanOptions& options) {
  std::vector<MemberFacts> facts(members.size());
  std::vector<std::size_t> jobs;
  std::vector<std::uint64_t> costs;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!members[i].readable || members[i].is_folder()) continue;
    jobs.push_back(i);
    costs.push_back(members[i].method == 0 ? 0 : members[i].size);
  }
  auto largest = costs;
  std::ranges::sort(largest, std::greater{});
  largest.resize(std::min<std::size_t>(largest.size(), 2));
  std::uint64_t budget = 0, total = 0;
  for (auto cost : largest) budget += cost;
  for (auto cost : costs) total += cost;
  constexpr std::uint64_t worth_a_thread = 1 << 20;
  const auto threads =
      total < worth_a_thread ? 1 : std::max(1U, std::thread::hardware_concurrency());
  run_within_budget(costs, budget, threads, [&](std::size_t job) {
    facts[jobs[job]] = read_facts(input, members[jobs[job]], options);
  });
  return facts;
}

// Compares RECORD with what was read; it must name every member except itself and signatures.
void verify_record(const ZipArchive& archive, const std::vector<MemberFacts>& facts, Item& item) {
  std::map<std::string, std::size_t> index;
  std::string record_name;
  std::string_view record_text;
  for (std::size_t i = 0; i < archive.members.size(); ++i) {
    const auto& member = archive.members[i];
    if (member.is_folder()) continue;
    index.try_emplace(member.name, i);
    if (is_dist_info(member.name, "RECORD")) {
      record_name = member.name;
      record_text = facts[i].text;
    }
  }
  auto report = [&](const char* id, const std::string& place, std::string what) {
    item.findings.push_back(
        {.id = id,
         .place = place,
         .what = std::move(what),
         .fix = "build the wheel again, or run `wheel pack`, which writes RECORD anew"});
  };
  if (record_name.empty()) return report("record-missing", "", "the wheel has no RECORD");
  std::set<std::string> listed;
  for (const auto& line : parse_record(record_text)) {
    const auto found = index.find(line.path);
    if (!listed.insert(line.path).second)
      report("record-duplicate", line.path, "RECORD lists it twice");
    if (found == index.end()) {
      report("record-extra", line.path, "RECORD lists a file that the wheel does not have");
      continue;
    }
    const auto& member = archive.members[found->second];
    const auto& read = facts[found->second];
    if (!read.read || line.path == record_name || is_signature(line.path)) continue;
    if (!line.hash.starts_with("sha256=")) {
      report("record-hash", line.path,
             line.hash.empty()
                 ? "RECORD has no hash for it"
                 : "RECORD's hash is not a sha256: " + line.hash.substr(0, line.hash.find('=')));
    } else if (line.hash != read.hash) {
      report("record-hash", line.path,
             "the contents have " + read.hash + "; RECORD says " + line.hash);
    } else if (line.size != std::to_string(member.size)) {
      report("record-size", line.path,
             "the file has " + std::to_string(member.size) + " bytes; RECORD says " +
                 (line.size.empty() ? "nothing" : line.size));
    } else {
      ++item.wheel->record_verified;
    }
  }
  for (const auto& [name, i] : index) {
    if (!listed.contains(name) && name != record_name && !is_signature(name))
      report("record-unlisted", name, "RECORD does not list it");
  }
}

std::string part_of(const ZipMember& member, const MemberFacts& facts) {
  if (facts.library) return "libraries";
  if (member.name.ends_with(".py") || member.name.ends_with(".pyi")) return "python";
  return member.name.find(".dist-info/") != std::string::npos ? "metadata" : "data";
}

// Modules bound to one Python that do not name it are for the one in the wheel's tag.
void name_python_from_tag(Item& item) {
  if (!item.wheel || item.wheel->file_name_tags.empty()) return;
  const auto tag = split_tag(item.wheel->file_name_tags.front());
  if (!tag.python.starts_with("cp") || !tag.abi.starts_with(tag.python)) return;
  item.python.min = python_version_of_tag(tag.abi.substr(2));
  item.python.because.push_back("the wheel is tagged " + tag.python + "-" + tag.abi);
}

// A wheel for another system than Linux has no ELF files: what it says of itself is all there is.
void judge_foreign(Item& item) {
  if (!item.wheel || !item.libraries.empty()) return;
  for (const auto& text : item.wheel->file_name_tags) {
    const auto tag = split_tag(text);
    if (tag.platform == "any" || tag.platform.find("linux") != std::string::npos) continue;
    item.platform = {.tag = tag.platform, .because = {"the wheel says so"}};
    if (tag.abi == "abi3" && tag.python.size() > 2)
      item.python = {.kind = "abi3",
                     .min = python_version_of_tag(tag.python.substr(2)),
                     .because = {"the wheel is tagged " + tag.python + "-abi3"}};
    else if (tag.abi.starts_with("cp"))
      item.python = {.kind = "version"};
    item.findings.push_back(
        {.id = "foreign-platform",
         .level = Finding::Level::warning,
         .what = "the wheel is for " + tag.platform + "; only Linux' ELF files are judged here",
         .fix = "judge it with a tool for that system (delocate, delvewheel)"});
    return;
  }
}

void judge(Item& item) {
  std::string architecture;
  if (item.wheel) {
    for (const auto& tag : item.wheel->file_name_tags) {
      if (architecture.empty()) architecture = architecture_of_tag(split_tag(tag).platform);
    }
  }
  item.platform = judge_platform(item.libraries, architecture);
  item.python = judge_python(item.libraries);
  judge_foreign(item);
  if (item.python.kind == "version" && !item.python.min) name_python_from_tag(item);
  item.torch = judge_torch(item.libraries);
  item.cuda = judge_cuda(item.libraries);
  std::ranges::stable_sort(item.findings, [](const Finding& a, const Finding& b) {
    return std::tie(a.place, a.id, a.offset, a.what) < std::tie(b.place, b.id, b.offset, b.what);
  });
}

}  // namespace

Result<Item> read_wheel(const WheelInput& input, const ScanOptions& options,
                        const ZipLimits& limits) {
  const auto archive = TRY(read_zip(input.bytes, limits));
  Item item{.file = input.path, .kind = "wheel", .size = input.bytes.size()};
  for (const auto& problem : archive.problems) item.findings.push_back(zip_finding(problem));
  auto claims = parse_wheel_name(input.path.substr(input.path.rfind('/') + 1));
  if (!claims)
    item.findings.push_back({.id = "wheel-name",
                             .what = claims.error().what,
                             .fix = "rename the wheel to what its builder called it"});
  item.wheel = claims ? *claims : WheelClaims{};
  auto facts = read_all(input, archive.members, options);
  for (std::size_t i = 0; i < facts.size(); ++i) {
    auto& member = facts[i];
    const auto& name = archive.members[i].name;
    std::ranges::move(member.findings, std::back_inserter(item.findings));
    if (!member.read) continue;
    item.size_by_part[part_of(archive.members[i], member)] += archive.members[i].size;
    if (is_dist_info(name, "WHEEL")) parse_wheel_file(member.text, *item.wheel);
    if (is_dist_info(name, "METADATA")) parse_metadata(member.text, *item.wheel);
    if (member.library) item.libraries.push_back(std::move(*member.library));
  }
  for (const auto* file : {"METADATA", "WHEEL"}) {
    if (std::ranges::none_of(archive.members,
                             [&](const auto& member) { return is_dist_info(member.name, file); }))
      item.findings.push_back({.id = "wheel-incomplete",
                               .what = "the wheel has no " + std::string(file) +
                                       " in a .dist-info folder: installers refuse it",
                               .fix = "build the wheel again with a standard tool"});
  }
  verify_record(archive, facts, item);
  for (const auto& library : item.libraries) {
    for (const auto& code : library.device_code) {
      item.size_by_part["device code"] += code.bytes;
      item.size_by_part["libraries"] -= std::min(code.bytes, item.size_by_part["libraries"]);
    }
  }
  std::ranges::stable_sort(item.libraries, {}, &LibraryFacts::path);
  judge(item);
  return item;
}

Item read_elf_file(const std::string& path, Bytes bytes, const ScanOptions& options) {
  Item item{.file = path, .kind = "elf", .size = bytes.size()};
  item.libraries.push_back(read_library(path, bytes, options, item.findings));
  judge(item);
  return item;
}

const char* name_of(Finding::Level level) {
  switch (level) {
    case Finding::Level::note:
      return "note";
    case Finding::Level::warning:
      return "warning";
    default:
      return "error";
  }
}

}  // namespace wheelscope
