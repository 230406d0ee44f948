// Thins installed packages in place. Each original is copied into a folder before its file is
// replaced, with a list of where each belongs. A file is restored only if nobody changed it since.
#include "commands/thin.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "commands/inputs.h"
#include "machine/distributions.h"
#include "machine/machine.h"
#include "packaging/record.h"
#include "report/json.h"
#include "report/text.h"
#include "source/system.h"
#include "text/text.h"

namespace wheelscope {
namespace {

namespace fs = std::filesystem;

constexpr const char* list_name = "thinned.jsonl";

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
  ModuleCount found;
  std::set<std::string> seen;  // RECORD may name a file twice
  auto& files = package.thin.files;
  for (const auto& line : package.lines) {
    const auto path = (fs::path(distribution.folder) / line.path).lexically_normal().string();
    std::error_code error;
    if (!fs::is_regular_file(path, error) || !seen.insert(path).second) continue;
    const auto size = fs::file_size(path, error);
    package.thin.size_before += size;
    const auto file = Source::map(path);
    if (!file || size == 0) continue;
    Allowance memory(Allowance::facts_for(size));
    auto plans = plan_thinning(path, file->bytes(), {wanted}, memory);
    if (plans.empty()) continue;
    for (const auto& [gpu, modules] : plans.front().modules) found += modules;
    if (!plans.front().changes()) continue;
    if (fs::is_symlink(path, error))
      package.thin.notes.push_back(path + " stays: it is a symbolic link");
    else if (record_hash(file->bytes().span(), algorithm_of(line.hash)) != line.hash)
      package.thin.notes.push_back(path + " stays: it is not what RECORD says was installed");
    else
      files.push_back(std::move(plans.front()));
  }
  if (!files.empty() && !found.serve()) {
    package.thin.notes.push_back("it stays: it has no code for " + joined(wanted.gpus));
    files.clear();
  }
  package.thin.size = package.thin.size_before;
  for (const auto& file : files) package.thin.size -= file.size_before - file.size;
  return package;
}

// A line of the list: a replacement that was about to be made.
struct Replacement {
  std::string package, path, original;  // the SHA-256 of the original names its copy
  std::string thinned;                  // empty: removed
};

// Returns the original of a file that is still as it was thinned; nothing if it was restored
// already.
Result<std::optional<Source>> original_of(const Replacement& file, const std::string& folder) {
  auto original = TRY(Source::map(folder + "/" + base_name(file.original)));
  if (hexadecimal(sha256(original.bytes().text())) != file.original)
    return fail(folder + "/" + file.original, "is damaged; install the package again");
  std::error_code error;
  std::string now;
  if (fs::exists(file.path, error)) {
    const auto here = TRY(Source::map(file.path));
    now = hexadecimal(sha256(here.bytes().text()));
    if (now == file.original) return std::nullopt;
  }
  if (now != file.thinned)
    return fail(file.path,
                "was changed after it was thinned; nothing of " + file.package + " was put back");
  return original;
}

// Restores all files of one package, or none: otherwise RECORD would not be true.
Result<std::size_t> put_back(const std::vector<Replacement>& files, const std::string& folder) {
  std::vector<std::pair<const Replacement*, Source>> originals;
  for (const auto& file : files) {
    if (auto original = TRY(original_of(file, folder)))
      originals.emplace_back(&file, std::move(*original));
  }
  for (const auto& [file, original] : originals) {
    TRY_VOID(write_file(file->path, text_of(original)));
    if (!file->thinned.empty()) continue;
    std::error_code ignored;  // a file that was removed has no mode to keep
    const auto mode = fs::status(folder + "/" + file->original, ignored).permissions();
    fs::permissions(file->path, mode, ignored);
  }
  return originals.size();
}

Result<void> save_copy(const std::string& path, const std::string& folder) {
  const auto original = TRY(Source::map(path));
  const auto copy = folder + "/" + hexadecimal(sha256(original.bytes().text()));
  TRY_VOID(write_file(copy, text_of(original)));
  std::error_code ignored;
  fs::permissions(copy, fs::status(path, ignored).permissions(), ignored);
  return {};
}

// Adds a file to the list. Must be called before the file is replaced, so that the list has every
// changed file.
Result<void> list_file(const Replacement& file, const std::string& folder) {
  const auto path = folder + "/" + list_name;
  const auto line = Json{{"package", file.package},
                         {"path", file.path},
                         {"original", file.original},
                         {"thinned", or_null(file.thinned)}}
                        .dump(-1, ' ', false, Json::error_handler_t::ignore);
  if (Json::parse(line)["path"] != file.path) return fail(file.path, "its name is not UTF-8");
  std::ofstream list(path, std::ios::app);
  if (!(list << line << "\n").flush()) return fail(path, std::strerror(errno));
  return {};
}

// Replaces the files of a plan, and RECORD; adds what was listed to `done`.
Result<void> replace_files(const InstalledPackage& package, const std::string& folder,
                           std::vector<Replacement>& done) {
  const auto own_name = package.thin.name + " " + package.thin.version;
  RecordRewriter record(package.record);
  auto replace = [&](const std::string& path, const Source& original,
                     std::optional<std::string_view> contents) -> Result<void> {
    auto& file = done.emplace_back(own_name, path, hexadecimal(sha256(original.bytes().text())));
    if (contents) file.thinned = hexadecimal(sha256(*contents));
    TRY_VOID(list_file(file, folder));
    if (contents) return write_file(path, *contents);
    if (unlink(path.c_str()) != 0) return fail(path, std::strerror(errno));
    return {};
  };
  for (const auto& plan : package.thin.files) {
    const auto file = TRY(Source::map(plan.path));
    if (plan.removed) {
      TRY_VOID(replace(plan.path, file, std::nullopt));
      continue;
    }
    const auto output = thinned(file.bytes(), plan).joined();
    if (output.bytes().size() != plan.size) return fail(plan.path, "no memory to rewrite it");
    TRY_VOID(replace(plan.path, file, text_of(output)));
  }
  std::string own;
  for (const auto& line : package.lines) {
    if (line.path.ends_with(".dist-info/RECORD")) own = line.path;
    const auto path =
        (fs::path(package.distribution.folder) / line.path).lexically_normal().string();
    const auto plan = std::ranges::find(package.thin.files, path, &FileThinning::path);
    if (plan == package.thin.files.end()) continue;
    if (plan->removed) {
      record.drop(line.path);
    } else {
      const auto file = TRY(Source::map(path));
      record.set(line.path, record_line(line.path, file.bytes().span()));
    }
  }
  return replace(package.record_path, TRY(Source::map(package.record_path)), record.text(own));
}

// Thins all of a package or nothing. Copies are made first, as they may fill the disk.
Result<void> write_package(InstalledPackage& package, const std::string& folder) {
  for (const auto& file : package.thin.files) TRY_VOID(save_copy(file.path, folder));
  TRY_VOID(save_copy(package.record_path, folder));
  std::vector<Replacement> done;
  const auto replaced = replace_files(package, folder, done);
  if (!replaced) std::ignore = put_back(done, folder);
  package.thin.written = replaced.has_value();
  return replaced;
}

}  // namespace

int thin_environment(const ThinFor& wanted, const Options& options, Streams streams) {
  if (options.write && options.save.empty())
    return bad_usage(
        "--write needs --save DIR, a folder for the original files: without it, this could not be "
        "undone",
        streams);
  const auto machine = read_machine(options.paths.empty() ? "" : options.paths.front());
  if (!machine) return complain(machine.error(), streams);
  if (!machine->python) return complain({0, machine->notes.front()}, streams);
  std::error_code error;
  const auto list = options.save + "/" + list_name;
  if (options.write && fs::exists(list, error))
    return complain({0, list + ": is there already; give --save an empty folder"}, streams);
  int code = clean;
  std::vector<ThinnedPackage> packages;
  for (const auto& distribution : list_distributions(machine->python->site_packages)) {
    auto package = plan_package(distribution, wanted);
    if (!package || (package->thin.files.empty() && package->thin.notes.empty())) continue;
    if (options.write && !package->thin.files.empty()) {
      if (const auto done = write_package(*package, options.save); !done)
        code = complain(done.error(), streams);
    }
    packages.push_back(std::move(package->thin));
    if (code != clean) break;  // a full disk, most likely
  }
  print("thin_packages", packages, thin_packages_text, options, streams);
  return code;
}

int undo_thinning(const Options& options, Streams streams) {
  const auto text = wheelscope::read_text(options.undo + "/" + list_name);
  if (!text) return complain(text.error(), streams);
  std::vector<std::vector<Replacement>> packages;
  for (const auto& line : split(*text, '\n')) {
    const auto json = Json::parse(line, nullptr, false);
    auto word = [&](const char* key) {
      const auto value = json.is_object() ? json.value(key, Json()) : Json();
      return value.is_string() ? value.get<std::string>() : "";
    };
    const Replacement file{word("package"), word("path"), word("original"), word("thinned")};
    if (file.original.empty()) continue;  // a line that was not finished: its file was not touched
    if (packages.empty() || packages.back().front().package != file.package)
      packages.emplace_back();
    packages.back().push_back(file);
  }
  int code = clean;
  std::size_t done = 0;
  for (const auto& files : packages) {
    if (const auto put = put_back(files, options.undo))
      done += *put;
    else
      code = complain(put.error(), streams);
  }
  if (options.json)
    streams.out << json_document("put_back", done);
  else
    streams.out << counted(done, "file") << " put back\n";
  return code;
}

}  // namespace wheelscope
