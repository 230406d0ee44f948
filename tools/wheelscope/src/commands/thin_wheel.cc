// Writes thinned wheels: copies members as they lie in the archive, except libraries that lose
// device code, RECORD, and the files that describe the cut.
#include "commands/thin.h"

#include <filesystem>
#include <unordered_map>

#include "packaging/claims.h"
#include "packaging/record.h"
#include "report/json.h"
#include "tables/tables.h"
#include "text/text.h"
#include "writers/zip_writer.h"

namespace wheelscope {
namespace {

constexpr std::string_view statement_schema = "wheelscope-thin-1",
                           thin_property = "wheelscope:thin";

// The members of a wheel, each of which RECORD names with the right hash.
class CheckedWheel {
 public:
  static Result<CheckedWheel> open(const WheelInput& input, const ZipLimits& limits) {
    TRY_VOID(parse_wheel_name(base_name(input.path)));
    CheckedWheel wheel(input);
    wheel.archive_ = TRY(read_zip(input.bytes, limits));
    for (const auto& problem : wheel.archive_.problems.listed)
      return fail(problem.offset.value_or(0), problem.place + ": " + problem.what);
    for (const auto& member : wheel.archive_.members) {
      if (is_dist_info(member.name, "RECORD")) wheel.record_ = &member;
    }
    if (!wheel.record_) return fail(0, "the wheel has no RECORD");
    wheel.dist_info_ = folder_of(wheel.record_->name);
    TRY_VOID(wheel.read_record());
    return wheel;
  }

  const std::vector<ZipMember>& members() const { return archive_.members; }
  const ZipMember& record() const { return *record_; }
  const std::string& record_text() const { return text_; }
  const std::string& dist_info() const { return dist_info_; }
  bool has(const std::string& file) const {  // in dist-info
    return contains(archive_.members, dist_info_ + "/" + file, &ZipMember::name);
  }
  bool is_signature(const ZipMember& member) const {
    return member.name == dist_info_ + "/RECORD.jws" || member.name == dist_info_ + "/RECORD.p7s";
  }

  // True if both RECORDs have the same hash for it.
  bool is_equal(const ZipMember& member, const CheckedWheel& other) const {
    const auto mine = lines_.find(member.name), theirs = other.lines_.find(member.name);
    return mine != lines_.end() && theirs != other.lines_.end() && !mine->second.hash.empty() &&
           mine->second.hash == theirs->second.hash;
  }

  // Returns the contents of a member if they match RECORD.
  Result<Source> contents(const ZipMember& member,
                          std::vector<DeflateBlock>* blocks = nullptr) const {
    const auto room = room_for(member, input_.bytes.size());
    if (!room)
      return fail(member.data_offset,
                  member.name + ": inflates to more than a wheel of this size justifies");
    auto data = read_member(input_.bytes, member, *room, blocks);
    if (!data) return fail(data.error().offset.value_or(0), member.name + ": " + data.error().what);
    if (&member == record_ || is_signature(member)) return std::move(*data);
    const auto line = lines_.find(member.name);
    if (line == lines_.end()) return fail(member.name, "RECORD does not list it");
    const auto algorithm = algorithm_of(line->second.hash);
    const auto hash = record_hash(data->bytes().span(), algorithm);
    if (hash.empty() ||
        hash.substr(algorithm.size()) != line->second.hash.substr(algorithm.size()) ||
        line->second.size != std::to_string(member.size))
      return fail(member.name, "RECORD has another hash or size for it");
    return std::move(*data);
  }

 private:
  explicit CheckedWheel(const WheelInput& input) : input_(input) {}

  Result<void> read_record() {
    constexpr std::uint64_t largest = 64 << 20;
    if (record_->size > largest) return fail(record_->name, "is too large");
    const auto data = TRY(contents(*record_));
    text_ = data.bytes().text();
    for (auto& line : parse_record(text_)) {
      auto path = std::move(line.path);  // the key keeps it
      if (!lines_.try_emplace(path, std::move(line)).second)
        return fail(path, "RECORD lists it twice");
    }
    for (const auto& member : archive_.members) {
      if (!member.is_folder() && &member != record_ && !is_signature(member) &&
          !lines_.contains(member.name))
        return fail(member.name, "RECORD does not list it");
    }
    std::set<std::string_view> names;
    for (const auto& member : archive_.members) names.insert(member.name);
    for (const auto& [path, line] : lines_) {
      if (!names.contains(path))
        return fail(path, "RECORD lists a file that the wheel does not have");
    }
    return {};
  }

  const WheelInput& input_;
  ZipArchive archive_;
  const ZipMember* record_ = nullptr;
  std::string dist_info_, text_;
  std::unordered_map<std::string, RecordLine> lines_;
};

std::string note_of(const ThinnedWheel& thin) {
  return "device code for " + joined(thin.wanted.gpus) + " alone, cut from sha256:" + thin.sha256;
}

// Returns no object if the text is not one, or is so large or deep that the library would recurse
// too often.
Json parse_sbom(std::string_view text) {
  constexpr std::size_t largest = 16 << 20, deepest = 100;
  return text.size() > largest || nests_deeper(text, deepest) ? Json()
                                                              : Json::parse(text, nullptr, false);
}

// Returns an SBOM with a note; nothing if the file is of no known format.
std::optional<std::string> noted_sbom(std::string_view text, const std::string& note) {
  auto sbom = parse_sbom(text);
  if (!sbom.is_object()) return std::nullopt;
  if (sbom.value("bomFormat", Json()) == "CycloneDX") {
    auto& metadata = sbom["metadata"];
    if (!metadata.is_object() && !metadata.is_null()) return std::nullopt;
    auto& properties = metadata["properties"];
    if (!properties.is_array() && !properties.is_null()) return std::nullopt;
    properties.push_back({{"name", thin_property}, {"value", note}});
  } else if (sbom.contains("spdxVersion") && !sbom.contains("comment")) {
    sbom["comment"] = note;
  } else {
    return std::nullopt;
  }
  const bool lines = text.find('\n') != text.npos;
  return sbom.dump(lines ? 2 : -1, ' ', false, Json::error_handler_t::replace) +
         (lines ? "\n" : "");
}

// True if `noted` is `original` with a note, whatever the note says.
bool is_noted(std::string_view original, std::string_view noted) {
  auto of = [](const Json& json, const char* key) {
    return json.is_object() ? json.value(key, Json()) : Json();
  };
  const auto sbom = parse_sbom(noted);
  const auto properties = of(of(sbom, "metadata"), "properties");
  const auto note = properties.is_array() && !properties.empty() ? of(properties.back(), "value")
                                                                 : of(sbom, "comment");
  return note.is_string() && noted_sbom(original, note.get<std::string>()) == noted;
}

std::string statement_of(const ThinnedWheel& thin) {
  Json json{
      {"schema", statement_schema},
      {"original",
       {{"file", base_name(thin.file)}, {"sha256", thin.sha256}, {"size", thin.size_before}}}};
  json.update(to_json(thin.wanted));
  json["files"] = to_json(thin.files);
  json["notes"] = thin.notes;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

ThinnedWheel begin(const WheelInput& input, const ThinFor& wanted) {
  return {.file = input.path, .wanted = wanted, .size_before = input.bytes.size()};
}

// Adds a member to one of the plans for a wheel.
void count(std::uint64_t size, std::vector<FileThinning>& files, std::size_t which,
           ThinnedWheel& plan) {
  plan.installed_before += size;
  plan.installed += files.empty() ? size : files[which].size;
  if (!files.empty()) plan.files.push_back(std::move(files[which]));
}

// Reads each member once. The new wheel is started at the first member that changes; the members
// before it are copied then.
class WheelWriter {
 public:
  WheelWriter(const WheelInput& input, const CheckedWheel& wheel, std::string path,
              ThinnedWheel& thin)
      : input_(input),
        wheel_(wheel),
        path_(std::move(path)),
        thin_(thin),
        record_(wheel.record_text()),
        memory_(Allowance::facts_for(input.bytes.size())) {}

  Result<void> write_members() {
    for (std::size_t i = 0; i < wheel_.members().size(); ++i) {
      if (!wheel_.members()[i].is_folder()) TRY_VOID(thin_member(i));
    }
    return {};
  }

  Result<void> finish(const std::optional<VariantFile>& variant) {
    TRY_VOID(copy_up_to(wheel_.members().size()));
    if (variant) TRY_VOID(add("variant.json", variant->json));
    TRY_VOID(add(thin_statement, statement_of(thin_)));
    const auto record = record_.text(wheel_.record().name);
    thin_.installed += record.size() - wheel_.record().size;
    TRY_VOID(zip_->replace(input_.bytes, wheel_.record(), std::as_bytes(std::span(record))));
    TRY_VOID(zip_->finish());
    thin_.size = zip_->size();
    thin_.written = path_;
    return {};
  }

 private:
  Result<void> add(const std::string& name, const std::string& contents) {
    const auto path = wheel_.dist_info() + "/" + name;
    record_.add(record_line(path, std::as_bytes(std::span(contents))));
    thin_.installed += contents.size();
    return zip_->add(path, input_.bytes, wheel_.record(), contents);
  }

  Result<void> thin_member(std::size_t index) {
    const auto& member = wheel_.members()[index];
    DeflatedOriginal original;
    const auto data = TRY(wheel_.contents(member, &original.blocks));
    auto plans = plan_thinning(member.name, data.bytes(), {thin_.wanted}, memory_);
    count(member.size, plans, 0, thin_);
    if (plans.empty() || !thin_.files.back().changes()) return {};
    const auto& plan = thin_.files.back();
    TRY_VOID(copy_up_to(index));
    ++copied_;
    if (plan.removed) {
      record_.drop(member.name);
      return {};
    }
    const auto output = thinned(data.bytes(), plan);
    original.stream = input_.bytes.span().subspan(member.data_offset, member.compressed_size);
    original.contents = data.bytes().span();
    return replace(member, output, original);
  }

  // Copies members that keep their device code; starts the file if necessary.
  Result<void> copy_up_to(std::size_t end) {
    if (!zip_) {
      thin_.sha256 = hexadecimal(sha256(input_.bytes.text()));
      zip_.emplace(TRY(ZipWriter::create(path_)));
    }
    for (; copied_ < end; ++copied_) TRY_VOID(copy(wheel_.members()[copied_]));
    return {};
  }

  Result<void> copy(const ZipMember& member) {
    if (&member == &wheel_.record()) return {};
    if (wheel_.is_signature(member)) {
      record_.drop(member.name);
      thin_.installed -= member.size;
      thin_.notes.push_back(member.name +
                            " was left out: it signs the RECORD of the original wheel");
      return {};
    }
    if (!member.is_folder() && member.name.starts_with(wheel_.dist_info() + "/sboms/")) {
      const auto data = TRY(wheel_.contents(member));
      if (const auto noted = noted_sbom(data.bytes().text(), note_of(thin_))) {
        thin_.installed += noted->size() - member.size;
        return replace(member, std::as_bytes(std::span(*noted)), {});
      }
      thin_.notes.push_back(member.name + " got no note: it is neither CycloneDX nor SPDX in JSON");
    }
    return zip_->copy(input_.bytes, member);
  }

  Result<void> replace(const ZipMember& member, const Pieces& contents,
                       const DeflatedOriginal& original) {
    record_.set(member.name, record_line(member.name, contents));
    return zip_->replace(input_.bytes, member, contents, original);
  }

  const WheelInput& input_;
  const CheckedWheel& wheel_;
  std::string path_;
  ThinnedWheel& thin_;
  RecordRewriter record_;
  Allowance memory_;
  std::optional<ZipWriter> zip_;
  std::size_t copied_ = 0;  // members
};

}  // namespace

Result<std::vector<ThinnedWheel>> plan_wheel(const WheelInput& input,
                                             const std::vector<ThinFor>& wanted,
                                             const ZipLimits& limits) {
  const auto wheel = TRY(CheckedWheel::open(input, limits));
  std::vector<ThinnedWheel> plans;
  for (const auto& one : wanted) plans.push_back(begin(input, one));
  Allowance memory(Allowance::facts_for(input.bytes.size()));
  for (const auto& member : wheel.members()) {
    if (member.is_folder()) continue;
    const auto data = TRY(wheel.contents(member));
    auto files = plan_thinning(member.name, data.bytes(), wanted, memory);
    for (std::size_t i = 0; i < plans.size(); ++i) count(member.size, files, i, plans[i]);
  }
  return plans;
}

Result<ThinnedWheel> thin_wheel(const WheelInput& input, const ThinFor& wanted,
                                const std::string& folder,
                                const std::optional<VariantFile>& variant,
                                const std::function<bool(const ThinnedWheel&)>& accepted,
                                const ZipLimits& limits) {
  const auto wheel = TRY(CheckedWheel::open(input, limits));
  if (wheel.has(thin_statement))
    return fail(thin_statement, "this wheel was thinned already; thin the original one instead");
  if (variant && wheel.has("variant.json"))
    return fail("variant.json", "this wheel is a variant already");
  auto name = base_name(input.path);
  if (variant) name.insert(name.size() - 4, "-" + variant->label);
  const auto path = (std::filesystem::path(folder) / name).string();
  std::error_code error;
  if (std::filesystem::equivalent(path, input.path, error))
    return fail(path, "is the wheel itself; give another folder with -o");
  auto thin = begin(input, wanted);
  WheelWriter writer(input, wheel, path, thin);
  TRY_VOID(writer.write_members());
  if (accepted(thin) && (thin.changes() || variant)) TRY_VOID(writer.finish(variant));
  return thin;
}

Result<ThinCheck> check_thinning(const WheelInput& original, const WheelInput& thin) {
  const auto before = TRY(CheckedWheel::open(original, {}));
  const auto after = TRY(CheckedWheel::open(thin, {}));
  std::unordered_map<std::string_view, const ZipMember*> left;
  for (const auto& member : after.members()) left[member.name] = &member;
  ThinCheck check;
  Gpus served;
  Allowance memory(Allowance::facts_for(original.bytes.size()));
  auto differ = [&](const std::string& path, std::optional<ThinDifference> difference) {
    if (difference) check.differences.emplace_back(path, *difference);
  };
  for (const auto& member : before.members()) {
    const auto found = left.find(member.name);
    const auto* other = found == left.end() ? nullptr : found->second;
    if (other) left.erase(found);
    if (member.is_folder() || before.is_signature(member)) continue;
    // Only one of two equal files is kept in memory; both are still checked against RECORD.
    const bool equal = other && before.is_equal(member, after);
    if (equal) TRY_VOID(after.contents(*other));
    const auto data = TRY(before.contents(member));
    if (equal) {
      differ(member.name,
             compare_thinned(member.name, data.bytes(), data.bytes(), served, check.lost, memory));
      continue;
    }
    if (!other) {
      differ(member.name, compare_removed(member.name, data.bytes(), served, check.lost, memory));
      continue;
    }
    const auto other_data = TRY(after.contents(*other));
    if (&member == &before.record()) continue;  // it is right in both
    const bool sbom = member.name.starts_with(before.dist_info() + "/sboms/");
    if (sbom && is_noted(data.bytes().text(), other_data.bytes().text())) continue;
    differ(member.name, compare_thinned(member.name, data.bytes(), other_data.bytes(), served,
                                        check.lost, memory));
  }
  left.erase(before.dist_info() + "/" + thin_statement);
  left.erase(before.dist_info() + "/variant.json");
  for (const auto& member : after.members()) {
    if (left.contains(member.name)) differ(member.name, ThinDifference::added);
  }
  for (const auto& gpu : check.lost) served.erase(gpu);
  check.gpus = std::move(served);
  return check;
}

}  // namespace wheelscope
