// Opens files for the loader, and reads ld.so.cache.
//
// The cache is "glibc-ld.so.cache1.1", then u32 entries, u32 bytes of strings, 20 bytes that do not
// matter here, and entries of 24 bytes: +0 u32 flags, +4 u32 name, +8 u32 path (both offsets from
// the start), +16 u64 hardware capabilities. An older format may precede it. Source: glibc's
// sysdeps/generic/dl-cache.h.
#include "loader/disk.h"

#include <algorithm>
#include <filesystem>

#include "facts/wheel.h"
#include "source/budget.h"

namespace wheelscope {
namespace {

constexpr std::string_view magic = "glibc-ld.so.cache1.1";
constexpr std::uint64_t header_size = 48, entry_size = 24;

// Returns the flags of libraries for a machine (FLAG_* in glibc's elf/cache.c), always as ELF files
// of glibc 2.
std::uint32_t flags_of(const std::string& machine) {
  if (machine == "x86_64") return 0x0303;
  if (machine == "aarch64") return 0x0a03;
  if (machine == "s390x") return 0x0403;
  if (machine == "ppc64le") return 0x0503;
  if (machine == "armv7l") return 0x0903;
  if (machine == "riscv64") return 0x1003;
  return 0x0003;
}

}  // namespace

std::map<std::string, std::string> read_loader_cache(Bytes cache, const std::string& machine) {
  std::map<std::string, std::string> entries;
  const auto at = cache.text().find(magic);
  if (at == std::string_view::npos) return entries;
  const auto table = cache.slice(at, cache.size() - at, "cache");
  const auto header = table->slice(0, header_size, "cache header");
  if (!header) return entries;
  for (std::uint64_t i = 0; i < header->u32(20); ++i) {
    const auto entry = table->slice(header_size + i * entry_size, entry_size, "cache entry");
    if (!entry) return {};
    const auto name = table->c_string(entry->u32(4), "name"),
               path = table->c_string(entry->u32(8), "path");
    if (!name || !path) return {};
    const bool for_special_hardware = entry->u64(16) != 0;
    if (entry->u32(0) == flags_of(machine) && !for_special_hardware)
      entries.try_emplace(std::string(*name), *path);
  }
  return entries;
}

std::vector<std::string> default_folders(const std::string& machine) {
  const auto triplet = (machine == "armv7l"    ? std::string("arm-linux-gnueabihf")
                        : machine == "i686"    ? std::string("i386-linux-gnu")
                        : machine == "ppc64le" ? std::string("powerpc64le-linux-gnu")
                                               : machine + "-linux-gnu");
  return {"/lib/" + triplet, "/usr/lib/" + triplet, "/lib64", "/usr/lib64", "/lib", "/usr/lib"};
}

std::string Disk::real_path(const std::string& path) const {
  std::error_code error;
  const auto real = std::filesystem::canonical(path.starts_with('/') ? root_ + path : path, error);
  return error ? std::string() : real.string();
}

std::unique_ptr<LibraryFacts> Disk::read(const FileToRead& file, const std::string& real) {
  const auto source = Source::map(real);
  if (!source) return nullptr;
  auto facts =
      read_lone_file(file.path, source->bytes(),
                     {.symbols = true, .device_code = file.device_code, .interfaces = false});
  if (!facts || !facts->libraries.front().loadable()) return nullptr;
  auto& library = facts->libraries.front();
  // A file that was cut off before its tables.
  if (!facts->problems.listed.empty() && library.symbols.empty() && library.needed.empty())
    return nullptr;
  return std::make_unique<LibraryFacts>(std::move(library));
}

const LibraryFacts* Disk::open(const std::string& path) {
  const auto known = paths_.find(path);
  if (known != paths_.end()) return known->second;
  const LibraryFacts* facts = nullptr;
  if (const auto real = real_path(path); !real.empty()) {
    const auto [file, is_new] = files_.try_emplace(real);
    if (is_new) file->second = read({path}, real);
    facts = file->second.get();
  }
  return paths_[path] = facts;
}

void Disk::read_all(const std::vector<FileToRead>& files) {
  struct Job {
    const FileToRead* file;
    std::unique_ptr<LibraryFacts>* place;
    std::string real;
  };
  std::vector<Job> jobs;
  std::vector<std::uint64_t> costs;
  for (const auto& asked : files) {
    const auto real = real_path(asked.path);
    if (real.empty()) continue;
    const auto [file, is_new] = files_.try_emplace(real);
    if (!is_new) continue;
    std::error_code error;
    const auto size = std::filesystem::file_size(real, error);
    jobs.push_back({&asked, &file->second, real});
    costs.push_back(error ? 0 : size);
  }
  constexpr std::uint64_t budget = std::uint64_t{8} << 30;  // of mapped bytes; few are touched
  run_within_budget(costs, budget, all_cores(),
                    [&](std::size_t i) { *jobs[i].place = read(*jobs[i].file, jobs[i].real); });
}

LoaderWorld Disk::world(const std::string& machine) {
  std::map<std::string, std::string> cache;
  if (const auto source = Source::map(root_ + "/etc/ld.so.cache"))
    cache = read_loader_cache(source->bytes(), machine);
  return {.open = [this](const std::string& path) { return open(path); },
          .is_damaged =
              [this](const std::string& path) {
                std::error_code error;
                return !open(path) && std::filesystem::is_regular_file(real_path(path), error);
              },
          .cached =
              [cache = std::move(cache)](const std::string& name) {
                const auto found = cache.find(name);
                return found == cache.end() ? std::string() : found->second;
              },
          .default_folders = default_folders(machine),
          .lib = std::filesystem::exists(root_ + "/etc/debian_version")
                     ? "lib/" + machine + "-linux-gnu"
                     : "lib64",
          .platform = machine};
}

}  // namespace wheelscope
