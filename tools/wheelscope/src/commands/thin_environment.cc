// Thins installed packages in place. Each original goes into a folder before its file is replaced,
// with a list of what belongs where; a file is put back only while it is what was written.
#include "commands/thin_environment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "machine/distributions.h"
#include "machine/machine.h"
#include "packaging/record.h"
#include "report/json.h"
#include "report/text.h"
#include "source/files.h"

namespace wheelscope {
namespace {

namespace fs = std::filesystem;

constexpr const char* list_name = "thinned.json";

// Replaces a file at once: whoever has it open, or linked elsewhere, keeps the old one.
Result<void> replace_file(const std::string& path, std::string_view contents) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return fail(path, "is gone");
  const auto beside = path + ".wheelscope-" + std::to_string(getpid());
  TRY_VOID(write_file(beside, contents));
  if (chmod(beside.c_str(), status.st_mode & 07777) != 0 ||
      rename(beside.c_str(), path.c_str()) != 0) {
    unlink(beside.c_str());
    return fail(path, "cannot be replaced");
  }
  return {};
}

std::string_view text_of(const Source& source) {
  return source.bytes().text();
}

struct InstalledPackage {
  Distribution distribution;
  std::string record_path, record;
  std::vector<RecordLine> lines;
  ThinnedPackage thin;
};

Result<InstalledPackage> plan_package(const Distribution& distribution, const ThinFor& wanted) {
  InstalledPackage package{.distribution = distribution,
                           .record_path = distribution.dist_info + "/RECORD",
                           .thin = {.name = distribution.name, .version = distribution.version}};
  package.record = TRY(wheelscope::read_text(package.record_path));
  package.lines = parse_record(package.record);
  for (const auto& line : package.lines) {
    const auto path = (fs::path(distribution.folder) / line.path).lexically_normal().string();
    std::error_code error;
    if (!fs::is_regular_file(path, error) || fs::is_symlink(path, error)) continue;
    const auto size = fs::file_size(path, error);
    package.thin.size_before += size;
    package.thin.size += size;
    const auto file = Source::map(path);
    if (!file || size == 0) continue;
    Allowance memory(Allowance::facts_for(size));
    auto plans = plan_thinning(path, file->bytes(), {wanted}, memory);
    if (plans.empty() || !plans.front().changes()) continue;
    if (record_hash(file->bytes().span(), algorithm_of(line.hash)) != line.hash) {
      package.thin.notes.push_back(path + " stays: it is not what RECORD says was installed");
      continue;
    }
    package.thin.size -= size - plans.front().size;
    package.thin.files.push_back(std::move(plans.front()));
  }
  return package;
}

// The list of what was replaced, written anew before each replacement.
class SavedOriginals {
 public:
  static Result<SavedOriginals> open(const std::string& folder) {
    SavedOriginals saved(folder);
    std::error_code error;
    if (fs::exists(saved.list_path(), error))
      return fail(saved.list_path(), "is there already; give --save an empty folder");
    return saved;
  }

  Result<void> save(const std::string& path, const Source& original,
                    const std::string& thin_digest) {
    const auto digest = sha256_digits(original.bytes().span());
    TRY_VOID(write_file(folder_ + "/" + digest, text_of(original)));
    files_.push_back({{"path", path},
                      {"original", digest},
                      {"thinned", thin_digest.empty() ? Json() : Json(thin_digest)}});
    return write_list();
  }

  Result<void> save_record(const std::string& path, const std::string& text,
                           const std::string& thin_text) {
    const auto digest = sha256_digits(std::as_bytes(std::span(text)));
    TRY_VOID(write_file(folder_ + "/" + digest, text));
    files_.push_back({{"path", path},
                      {"original", digest},
                      {"thinned", sha256_digits(std::as_bytes(std::span(thin_text)))}});
    return write_list();
  }

 private:
  explicit SavedOriginals(std::string folder) : folder_(std::move(folder)) {}
  std::string list_path() const { return folder_ + "/" + list_name; }
  Result<void> write_list() const {
    return write_file(list_path(), Json{{"schema_version", 1}, {"files", files_}}.dump(2) + "\n");
  }

  std::string folder_;
  Json files_ = Json::array();
};

Result<void> write_package(InstalledPackage& package, SavedOriginals& saved) {
  RecordRewriter record(package.record);
  const auto folder = fs::path(package.distribution.folder);
  for (const auto& line : package.lines) {
    const auto path = (folder / line.path).lexically_normal().string();
    const auto plan = std::ranges::find(package.thin.files, path, &FileThinning::path);
    if (plan == package.thin.files.end()) continue;
    const auto file = TRY(Source::map(path));
    if (plan->remove) {
      TRY_VOID(saved.save(path, file, ""));
      if (unlink(path.c_str()) != 0) return fail(path, "cannot be removed");
      record.drop(line.path);
      continue;
    }
    const auto output = thinned(file.bytes(), *plan);
    if (output.bytes().size() != plan->size) return fail(path, "no memory to rewrite it");
    TRY_VOID(saved.save(path, file, sha256_digits(output.bytes().span())));
    TRY_VOID(replace_file(path, text_of(output)));
    record.set(line.path, record_line(line.path, output.bytes().span()));
  }
  const auto own = std::ranges::find_if(package.lines, [](const RecordLine& line) {
    return line.path.ends_with(".dist-info/RECORD");
  });
  const auto text = record.text(own == package.lines.end() ? "" : own->path);
  TRY_VOID(saved.save_record(package.record_path, package.record, text));
  TRY_VOID(replace_file(package.record_path, text));
  package.thin.written = true;
  return {};
}

Result<void> put_back(const Json& file, const std::string& folder) {
  if (!file.is_object() || !file.value("path", Json()).is_string() ||
      !file.value("original", Json()).is_string())
    return fail(folder, "its list is damaged");
  const auto path = file["path"].get<std::string>(), digest = file["original"].get<std::string>();
  const auto original = TRY(Source::map(folder + "/" + base_name(digest)));
  if (sha256_digits(original.bytes().span()) != digest)
    return fail(folder + "/" + digest, "is damaged; install the package again");
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (file.value("thinned", Json()).is_string())
      return fail(path, "is gone; it was not put back");
    return write_file(path, text_of(original));
  }
  const auto here = TRY(Source::map(path));
  const auto now = sha256_digits(here.bytes().span());
  if (now == digest) return {};  // an earlier attempt got this far
  if (file.value("thinned", Json()) != now)
    return fail(path, "was changed after it was thinned; it was not put back");
  return replace_file(path, text_of(original));
}

}  // namespace

int thin_environment(const ThinFor& wanted, const Options& options, Streams streams) {
  if (options.write && options.save.empty()) {
    streams.err << "wheelscope: --write needs --save DIR, a folder for the original files: without "
                   "it, this could not be undone\n";
    return usage;
  }
  const auto machine = read_machine(options.paths.empty() ? "" : options.paths.front());
  if (!machine) return complain(machine.error(), streams);
  if (!machine->python) return complain({0, machine->notes.front()}, streams);
  std::optional<SavedOriginals> saved;
  if (options.write) {
    auto opened = SavedOriginals::open(options.save);
    if (!opened) return complain(opened.error(), streams);
    saved = std::move(*opened);
  }
  int code = clean;
  std::vector<ThinnedPackage> packages;
  for (const auto& distribution : list_distributions(machine->python->site_packages)) {
    auto package = plan_package(distribution, wanted);
    if (!package || (package->thin.files.empty() && package->thin.notes.empty())) continue;
    if (saved && !package->thin.files.empty()) {
      if (const auto done = write_package(*package, *saved); !done)
        code = complain(done.error(), streams);
    }
    packages.push_back(std::move(package->thin));
  }
  if (options.json) {
    auto json = Json::array();
    for (const auto& package : packages) json.push_back(to_json(package));
    streams.out << json_document("thin_packages", std::move(json));
  } else {
    streams.out << thin_packages_text(packages, options.style);
  }
  return code;
}

int undo_thinning(const Options& options, Streams streams) {
  const auto text = wheelscope::read_text(options.undo + "/" + list_name);
  if (!text) return complain(text.error(), streams);
  const auto list = Json::parse(*text, nullptr, false);
  if (!list.is_object() || !list.value("files", Json()).is_array())
    return complain({0, options.undo + "/" + list_name + ": is damaged"}, streams);
  int code = clean;
  std::size_t done = 0;
  for (const auto& file : list["files"]) {
    if (const auto put = put_back(file, options.undo); !put)
      code = complain(put.error(), streams);
    else
      ++done;
  }
  if (options.json)
    streams.out << json_document("put_back", done);
  else
    streams.out << counted(done, "file") << " put back\n";
  return code;
}

}  // namespace wheelscope
