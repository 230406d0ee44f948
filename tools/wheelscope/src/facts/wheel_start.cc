// Reads the members that matter in parallel: over a network, most time is spent waiting.
#include "facts/wheel.h"

#include <algorithm>
#include <array>
#include <set>

#include "packaging/claims.h"
#include "packaging/requirement.h"
#include "readers/zip.h"
#include "source/budget.h"
#include "text/text.h"

namespace wheelscope {
namespace {

constexpr unsigned members_at_once = 32;  // in one connection, where the server allows that

// Recognises a static CUDA runtime by the functions of the C library that it needs, and that hardly
// anything else needs together. Seen in CUDA 11.2, 12.2, 12.8, 12.9 and 13.4 for x86_64, and in
// 12.9 and 13.0 for aarch64. The texts and code that tell its version lie behind the first bytes.
void look_for_cudart(LibraryFacts& library) {
  constexpr std::array<std::string_view, 5> needs{"dlvsym", "mkfifo", "nftw",
                                                  "pthread_rwlockattr_setpshared", "shmget"};
  const bool inside = std::ranges::all_of(needs, [&](std::string_view name) {
    return std::ranges::any_of(library.symbols, [&](const SymbolFact& symbol) {
      return !symbol.defined && symbol.name == name;
    });
  });
  if (!inside) return;
  library.cudart_version = "";
  library.cudart_evidence = {
      "needs dlvsym, mkfifo, nftw and others, as a CUDA runtime inside does"};
}

bool is_loose_device_code(const ZipMember& member) {
  return member.name.ends_with(".cubin") || member.name.ends_with(".fatbin") ||
         member.name.ends_with(".ptx");
}

// Judges by the name: fetching the first bytes of every member would be too much.
bool may_be_library(const ZipMember& member) {
  constexpr std::uint64_t smallest = 512;
  if (!member.readable || member.is_folder() || member.size < smallest) return false;
  const auto name = base_name(member.name);
  return name.ends_with(".so") || name.find(".so.") != name.npos ||
         (name.find('.') == name.npos && member.name.find(".dist-info/") == std::string::npos);
}

class StartReader {
 public:
  StartReader(const WheelInput& input, KnownLibrary is_known, ZipArchive& archive, Facts& facts)
      : input_(input),
        is_known_(std::move(is_known)),
        archive_(archive),
        facts_(facts),
        memory_(Allowance::facts_for(input.bytes.size())),
        budget_(Allowance::contents_for(input.bytes.size())) {}

  void run(std::string metadata, bool numpy, const ClaimsReader& on_claims) {
    if (metadata.empty()) metadata = read_text("METADATA");
    parse_metadata(metadata, *facts_.wheel);
    if (on_claims) on_claims(*facts_.wheel);
    meets_numpy_ = numpy || requires_project(facts_.wheel->requires_dist, "numpy");
    parse_wheel_file(read_text("WHEEL"), *facts_.wheel);
    for (const auto& member : archive_.members) inside_.insert(base_name(member.name));
    std::vector<ZipMember*> members;
    std::vector<std::uint64_t> costs;
    for (auto& member : archive_.members) {
      if (!may_be_library(member)) continue;
      members.push_back(&member);
      costs.push_back(member.size);
    }
    std::vector<std::optional<LibraryFacts>> libraries(members.size());
    std::vector<ProblemList> problems(members.size());
    run_within_budget(costs, budget_, members_at_once, [&](std::size_t i) {
      libraries[i] = read_library_of(*members[i], problems[i]);
    });
    for (std::size_t i = 0; i < members.size(); ++i) {
      facts_.problems.add(std::move(problems[i]));
      if (!libraries[i]) continue;
      if (libraries[i]->in_part) look_for_cudart(*libraries[i]);
      facts_.libraries.push_back(std::move(*libraries[i]));
    }
    mention_loose_device_code();
    std::ranges::stable_sort(facts_.libraries, {}, &LibraryFacts::path);
  }

  // Reads a file in the dist-info folder; empty if it is not available.
  std::string read_text(std::string_view file) {
    constexpr std::uint64_t longest = 16 << 20;
    for (auto& member : archive_.members) {
      if (!is_dist_info(member.name, file) || !member.readable || member.size > longest) continue;
      ask_for(input_.bytes, member);
      if (auto located = locate_data(input_.bytes, member); !located) {
        facts_.problems.add("zip-header", member.name, located.error());
        return {};
      }
      const auto data = read_member(input_.bytes, member);
      if (data) return std::string(data->bytes().text());
      facts_.problems.add(data.error());
      return {};
    }
    facts_.problems.add({.id = "wheel-incomplete",
                         .what = "the wheel has no " + std::string(file) +
                                 " in a .dist-info folder: installers refuse it"});
    return {};
  }

 private:
  // Without its bytes, all that can be said about device code is that it exists.
  void mention_loose_device_code() {
    for (const auto& member : archive_.members) {
      if (!is_loose_device_code(member)) continue;
      if (!memory_.take(sizeof(LibraryFacts) + member.name.size())) return;
      facts_.libraries.push_back({.path = member.name,
                                  .size = member.size,
                                  .role = Role::device,
                                  .kind = FileKind::fatbin,
                                  .machine = "cuda",
                                  .in_part = true});
    }
  }

  std::optional<LibraryFacts> read_library_of(ZipMember& member, ProblemList& problems) {
    constexpr std::uint64_t enough_for_most = 128 << 10;
    ask_for(input_.bytes, member, enough_for_most);
    if (auto located = locate_data(input_.bytes, member); !located) {
      problems.add("zip-header", member.name, located.error());
      return std::nullopt;
    }
    if (member.method == 0) return read_stored(member, problems);
    MemberStart start(input_.bytes, member);
    std::uint64_t tried = 0;
    while (true) {
      const auto grown = start.grow();
      if (!grown) {
        problems.add("zip-data", member.name, grown.error());
        return std::nullopt;
      }
      const auto bytes = start.bytes();
      constexpr std::uint64_t magic_size = 4;
      if (bytes.size() < magic_size && *grown) continue;
      if (!looks_like_elf(bytes)) return std::nullopt;
      if (!*grown || bytes.size() > largest_start(member)) break;
      if (bytes.size() < tried + tried / 2) continue;  // most of it was searched before
      tried = bytes.size();
      auto library = read_library_start(member.name, bytes, member.size, memory_);
      if (library && is_plausible(*library) && !may_use_numpy(*library)) return library;
      if (library) break;
    }
    const auto room = room_for(member, input_.bytes.size());
    if (!room) {
      problems.add({.id = "limit", .place = member.name, .what = "is too large to be read whole"});
      return std::nullopt;
    }
    const auto data = read_member(input_.bytes, member, *room);
    if (data) return read_library(member.name, data->bytes(), {.symbols = true}, memory_, problems);
    problems.add(data.error());
    return std::nullopt;
  }

  // Each part of a stored library can be fetched alone.
  std::optional<LibraryFacts> read_stored(const ZipMember& member, ProblemList& problems) {
    const auto window = input_.bytes.window(member.data_offset, member.compressed_size, "library");
    if (!window) return std::nullopt;
    auto library = read_library(member.name, *window, {.symbols = true, .device_code = false},
                                memory_, problems);
    if (library) library->in_part = true;
    return library;
  }

  // Returns how many bytes to search: tables that are not in them were moved to the end, for
  // instance by patchelf.
  static std::uint64_t largest_start(const ZipMember& member) {
    constexpr std::uint64_t always = 4 << 20;
    return std::max(always, member.size / 8);
  }

  // True if a module's texts, which lie behind the first bytes, may tell which NumPy it was built
  // for: if it opens capsules, as the API is one, or fetches types by their names, as modules do
  // that Cython compiled, and compare the sizes of NumPy's types.
  bool may_use_numpy(const LibraryFacts& library) const {
    constexpr std::uint64_t largest = 64 << 20;
    return meets_numpy_ && library.size <= largest &&
           std::ranges::any_of(library.symbols, [](const SymbolFact& symbol) {
             return !symbol.defined && (symbol.name == "PyCapsule_GetPointer" ||
                                        symbol.name == "PyObject_GetAttrString");
           });
  }

  bool is_plausible(const LibraryFacts& library) const {
    return std::ranges::all_of(library.needed, [&](const std::string& name) {
      return library.version_needs.contains(name) || inside_.contains(name) || is_known_(name);
    });
  }

  const WheelInput& input_;
  KnownLibrary is_known_;
  ZipArchive& archive_;
  Facts& facts_;
  Allowance memory_;
  std::uint64_t budget_;
  std::set<std::string> inside_;
  bool meets_numpy_ = false;
};

}  // namespace

Result<Facts> read_wheel_start(const WheelInput& input, const KnownLibrary& is_known,
                               std::string metadata, bool numpy, const ClaimsReader& on_claims) {
  auto archive = TRY(read_zip(input.bytes, {}, LocalHeaders::left));
  auto facts = facts_of_archive(input, archive);
  StartReader(input, is_known, archive, facts).run(std::move(metadata), numpy, on_claims);
  return facts;
}

Result<std::string> read_wheel_metadata(const WheelInput& input) {
  auto archive = TRY(read_zip(input.bytes, {}, LocalHeaders::left));
  Facts facts;
  auto text = StartReader(input, {}, archive, facts).read_text("METADATA");
  if (text.empty()) return fail(0, "its METADATA cannot be read");
  return text;
}

}  // namespace wheelscope
