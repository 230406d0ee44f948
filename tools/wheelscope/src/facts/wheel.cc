// Reads a wheel: RECORD first, then the other members in parallel, each inflated, hashed and, if it
// holds machine code, turned into facts.
#include "facts/wheel.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "packaging/claims.h"
#include "packaging/record.h"
#include "packaging/requirement.h"
#include "source/budget.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// The facts of one member; small, as there may be a million of them.
struct MemberFacts {
  bool read = false;
  bool hash_is_right = false, hash_is_unknown = false;
  std::string hash;  // if it is not the recorded one
  std::string text;  // of dist-info files that matter
  std::unique_ptr<LibraryFacts> library;
  std::unique_ptr<ProblemList> problems;
};

bool is_signature(std::string_view name) {
  return is_dist_info(name, "RECORD.jws") || is_dist_info(name, "RECORD.p7s");
}

std::string part_of(const ZipMember& member, const MemberFacts& facts) {
  if (facts.library && facts.library->role == Role::device) return "device code";
  if (facts.library) return "libraries";
  if (member.name.ends_with(".py") || member.name.ends_with(".pyi")) return "python";
  return member.name.find(".dist-info/") != std::string::npos ? "metadata" : "data";
}

class WheelReader {
 public:
  WheelReader(const WheelInput& input, const ScanOptions& options, const ZipArchive& archive,
              Facts& facts)
      : input_(input),
        options_(options),
        archive_(archive),
        facts_(facts),
        file_name_(facts.wheel->name),
        file_version_(facts.wheel->version),
        memory_(Allowance::facts_for(input.bytes.size())),
        budget_(Allowance::contents_for(input.bytes.size())) {}

  void run() {
    read_record();
    read_members();
    for (std::size_t i = 0; i < read_.size(); ++i) gather(archive_.members[i], read_[i]);
    for (const auto* file : {"METADATA", "WHEEL"}) {
      if (std::ranges::none_of(archive_.members,
                               [&](const auto& member) { return is_dist_info(member.name, file); }))
        problem("wheel-incomplete", "",
                "the wheel has no " + std::string(file) +
                    " in a .dist-info folder: installers refuse it");
    }
    check_dist_info();
    verify_record();
    std::ranges::stable_sort(facts_.libraries, {}, &LibraryFacts::path);
  }

 private:
  void problem(const char* id, const std::string& place, std::string what) {
    facts_.problems.add({.id = id, .place = place, .what = std::move(what)});
  }

  // Checks for the folder that installers look for: the one that the file name promises.
  void check_dist_info() {
    std::set<std::string> folders;
    for (const auto& member : archive_.members) {
      const auto folder = member.name.substr(0, member.name.find('/'));
      constexpr std::size_t most = 10;
      if (folder.ends_with(".dist-info") && folder.size() < member.name.size() &&
          folders.size() < most)
        folders.insert(folder);
    }
    for (const auto& folder : folders) {
      const auto title = folder.substr(0, folder.size() - std::size(".dist-info") + 1);
      const auto dash = std::min(title.rfind('-'), title.size());
      const auto name = title.substr(0, dash),
                 version = title.substr(std::min(dash + 1, title.size()));
      const auto ours = parse_version(version), promised = parse_version(file_version_);
      if (file_name_.empty() || (canonical_name(name) == canonical_name(file_name_) &&
                                 (ours && promised ? *ours == *promised : true)))
        continue;
      problem("dist-info", folder,
              "the file name promises " + file_name_ + "-" + file_version_ +
                  ".dist-info: installers refuse this folder");
    }
  }

  void read_record() {
    const auto member = std::ranges::find_if(archive_.members, [](const ZipMember& candidate) {
      return is_dist_info(candidate.name, "RECORD");
    });
    if (member == archive_.members.end())
      return problem("record-missing", "", "the wheel has no RECORD");
    record_name_ = member->name;
    const auto room = room_for(*member, input_.bytes.size());
    if (!member->readable || !room) return;  // read_members() says why
    if (room == Room::disk)
      return problem("limit", record_name_, "is larger than a wheel of this size justifies");
    const auto data = read_member(input_.bytes, *member);
    if (!data) return;  // read_members() says why
    const auto text = data->bytes().text();
    const auto lines = static_cast<std::uint64_t>(std::ranges::count(text, '\n')) + 1;
    if (!memory_.take(2 * text.size() + lines * sizeof(RecordLine)))
      return problem("limit", record_name_, "has more lines than a wheel of this size justifies");
    record_ = parse_record(text);
    for (std::size_t i = 0; i < record_.size(); ++i) line_of_.try_emplace(record_[i].path, i);
    has_record_ = true;
  }

  void read_members() {
    read_.resize(archive_.members.size());
    std::vector<std::size_t> jobs;
    std::vector<std::uint64_t> costs;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < archive_.members.size(); ++i) {
      const auto& member = archive_.members[i];
      if (!member.readable || member.is_folder()) continue;
      const auto room = room_for(member, input_.bytes.size());
      if (!room) {
        problem("limit", member.name,
                "inflates to " + std::to_string(member.size) +
                    " bytes, more than a wheel of this size justifies; it was not read");
        continue;
      }
      jobs.push_back(i);
      costs.push_back(member.method == 0 || room == Room::disk ? 0 : member.size);
      total += costs.back();
    }
    auto largest = costs;
    std::ranges::sort(largest, std::greater{});
    largest.resize(std::min<std::size_t>(largest.size(), 2));
    std::uint64_t two_largest = 0;
    for (auto cost : largest) two_largest += cost;
    constexpr std::uint64_t worth_a_thread = 1 << 20;
    run_within_budget(costs, std::min(two_largest, budget_),
                      total < worth_a_thread ? 1 : all_cores(),
                      [&](std::size_t job) { read_one(jobs[job]); });
  }

  void read_one(std::size_t index) {
    const auto& member = archive_.members[index];
    auto& facts = read_[index];
    auto problems = std::make_unique<ProblemList>();
    const auto room = room_for(member, input_.bytes.size()).value_or(Room::memory);
    if (const auto data = read_member(input_.bytes, member, room)) {
      const auto contents = data->bytes();
      facts.read = true;
      check_hash(member, contents, facts);
      if (auto library = read_library(member.name, contents, options_, memory_, *problems))
        facts.library = std::make_unique<LibraryFacts>(std::move(*library));
      else if (is_dist_info(member.name, "WHEEL") || is_dist_info(member.name, "METADATA") ||
               is_dist_info(member.name, variant_file))
        keep_text(member, contents, facts, *problems);
    } else {
      problems->add(data.error());
    }
    if (!problems->counts.empty()) facts.problems = std::move(problems);
  }

  void keep_text(const ZipMember& member, Bytes contents, MemberFacts& facts,
                 ProblemList& problems) {
    constexpr std::uint64_t copies = 4;  // the text, and what is kept of it
    if (memory_.take(copies * contents.size()))
      facts.text = contents.text();
    else
      problems.add(
          {.id = "limit",
           .place = member.name,
           .what = "is larger than a wheel of this size justifies; it was not looked into"});
  }

  void check_hash(const ZipMember& member, Bytes contents, MemberFacts& facts) {
    const auto line = line_of_.find(member.name);
    if (line == line_of_.end()) return;
    const auto& recorded = record_[line->second].hash;
    const auto algorithm = algorithm_of(recorded);
    if (!is_strong(algorithm)) return;
    auto hash = record_hash(contents.span(), algorithm);
    if (hash.empty()) facts.hash_is_unknown = true;
    facts.hash_is_right =
        !hash.empty() && hash.substr(algorithm.size()) == recorded.substr(algorithm.size());
    if (!facts.hash_is_right) facts.hash = std::move(hash);
  }

  void gather(const ZipMember& member, MemberFacts& facts) {
    if (facts.problems) facts_.problems.add(std::move(*facts.problems));
    if (!facts.read) return;
    auto& parts = facts_.size_by_part;
    parts[part_of(member, facts)] += member.size;
    if (is_dist_info(member.name, "WHEEL")) parse_wheel_file(facts.text, *facts_.wheel);
    if (is_dist_info(member.name, "METADATA")) parse_metadata(facts.text, *facts_.wheel);
    if (is_dist_info(member.name, variant_file)) parse_variant_file(facts.text, *facts_.wheel);
    if (!facts.library) return;
    if (facts.library->role == Role::host) {
      for (const auto& code : facts.library->device_code) {
        parts["device code"] += code.bytes;
        parts["libraries"] -= std::min(code.bytes, parts["libraries"]);
      }
    }
    facts_.libraries.push_back(std::move(*facts.library));
    facts.library.reset();
  }

  // Compares RECORD with what was read; it must name every member except itself and signatures.
  void verify_record() {
    if (!has_record_) return;
    std::unordered_map<std::string_view, std::size_t> index;
    for (std::size_t i = 0; i < archive_.members.size(); ++i) {
      if (!archive_.members[i].is_folder()) index.try_emplace(archive_.members[i].name, i);
    }
    for (std::size_t i = 0; i < record_.size(); ++i) {
      const auto& line = record_[i];
      if (line_of_.at(line.path) != i)
        problem("record-duplicate", line.path, "RECORD lists it twice");
      const auto found = index.find(line.path);
      if (found == index.end() && is_folder(line.path)) continue;
      if (found == index.end())
        problem("record-extra", line.path, "RECORD lists a file that the wheel does not have");
      else
        verify_line(line, archive_.members[found->second], read_[found->second]);
    }
    for (const auto& member : archive_.members) {
      if (!member.is_folder() && !line_of_.contains(member.name) && member.name != record_name_ &&
          !is_signature(member.name))
        problem("record-unlisted", member.name, "RECORD does not list it");
    }
  }

  // True for a folder, which some builders list in RECORD and installers skip.
  bool is_folder(const std::string& path) const {
    return path.ends_with('/') && std::ranges::any_of(archive_.members, [&](const auto& member) {
             return member.name.starts_with(path);
           });
  }

  void verify_line(const RecordLine& line, const ZipMember& member, const MemberFacts& read) {
    if (!read.read || line.path == record_name_ || is_signature(line.path)) return;
    const auto algorithm = algorithm_of(line.hash);
    if (!is_strong(algorithm)) {
      problem("record-hash", line.path,
              line.hash.empty() ? "RECORD has no hash for it"
                                : "RECORD's hash is not a sha256 or better: " + algorithm);
    } else if (read.hash_is_unknown) {
      return;  // allowed, and we cannot tell whether it is right
    } else if (!read.hash_is_right) {
      problem("record-hash", line.path,
              read.hash.empty() ? "RECORD lists it twice, with different hashes"
                                : "the contents have " + read.hash + "; RECORD says " + line.hash);
    } else if (line.size != std::to_string(member.size)) {
      problem("record-size", line.path,
              "the file has " + std::to_string(member.size) + " bytes; RECORD says " +
                  (line.size.empty() ? "nothing" : line.size));
    } else {
      ++facts_.wheel->record_verified;
    }
  }

  const WheelInput& input_;
  const ScanOptions& options_;
  const ZipArchive& archive_;
  Facts& facts_;
  std::string file_name_, file_version_;  // METADATA's take their place in `facts_`
  Allowance memory_;
  std::uint64_t budget_;  // of the contents of members that are read at the same time
  bool has_record_ = false;
  std::string record_name_;
  std::vector<RecordLine> record_;
  std::unordered_map<std::string_view, std::size_t> line_of_;  // the first for each path
  std::vector<MemberFacts> read_;
};

}  // namespace

Facts facts_of_archive(const WheelInput& input, const ZipArchive& archive) {
  Facts facts{.file = input.path, .kind = Facts::Kind::wheel, .size = input.bytes.size()};
  facts.problems = archive.problems;
  auto claims = parse_wheel_name(base_name(input.path));
  if (!claims) facts.problems.add({.id = "wheel-name", .what = claims.error().what});
  facts.wheel = claims ? *claims : WheelClaims{};
  return facts;
}

Result<Facts> read_wheel(const WheelInput& input, const ScanOptions& options,
                         const ZipLimits& limits) {
  const auto archive = TRY(read_zip(input.bytes, limits));
  auto facts = facts_of_archive(input, archive);
  WheelReader(input, options, archive, facts).run();
  return facts;
}

std::optional<Facts> read_lone_file(const std::string& path, Bytes bytes,
                                    const ScanOptions& options) {
  Allowance memory(Allowance::facts_for(bytes.size()));
  Facts facts{.file = path, .kind = Facts::Kind::elf, .size = bytes.size()};
  auto library = read_library(path, bytes, options, memory, facts.problems);
  if (!library) return std::nullopt;
  if (library->role == Role::device) facts.kind = Facts::Kind::device;
  facts.libraries.push_back(std::move(*library));
  return facts;
}

std::string installed_path(const std::string& member) {
  const auto first = member.find('/');
  const auto second = first == member.npos ? first : member.find('/', first + 1);
  if (second == member.npos || !member.substr(0, first).ends_with(".data")) return member;
  const auto kind = member.substr(first + 1, second - first - 1);
  return kind == "purelib" || kind == "platlib" ? member.substr(second + 1) : member;
}

}  // namespace wheelscope
