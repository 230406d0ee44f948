// Reads CUDA fat binaries. The format has no public spec; this description was derived from real
// wheels and cuobjdump.
//
// clang-format off
// Section .nv_fatbin (and __nv_relfatbin, for relocatable device code) holds containers back to
// back, 8-byte aligned. A container is a header and a body; the body is a row of entries; an entry
// is a header and a payload. All little-endian, whatever the machine.
//
//   container   +0  u32  magic 0xBA55ED50        entry   +0   u16  kind: 1 PTX, 2 SASS, 8 LTO-IR
//               +4  u16  version 1                       +4   u32  size of this header
//               +6  u16  size of this header             +8   u64  size of the payload, padded
//               +8  u64  size of the body                +16  u32  compressed size; 0: raw
//                                                        +24  u16  minor, +26 u16 major (PTX: of its language)
//                                                        +28  u32  architecture
//                                                        +32  u32  offset of its source's name, +36 u32 its length
//                                                        +40  u64  flags, see below
//                                                        +56  u64  uncompressed size
// clang-format on
#include "readers/fatbin.h"

#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>

#include "text/text.h"

namespace wheelscope {
namespace {

constexpr std::uint32_t container_magic = 0xBA55ED50;
constexpr std::uint64_t container_header = 16, entry_header = 64, alignment = 8;
constexpr std::uint64_t flag_lz4 = 0x2000, flag_zstd = 0x8000, flag_a = 0x100000, flag_f = 0x200000;
constexpr std::uint64_t largest_code = std::uint64_t{1} << 30;

std::string target_name(std::uint64_t arch, std::uint64_t flags) {
  return std::to_string(arch) + (flags & flag_a ? "a" : flags & flag_f ? "f" : "");
}

CodeKind kind_of(unsigned raw) {
  switch (raw) {
    case 1:
      return CodeKind::ptx;
    case 2:
      return CodeKind::sass;
    case 8:
      return CodeKind::lto_ir;
    default:
      return CodeKind::unknown;
  }
}

class ContainerReader {
 public:
  ContainerReader(Bytes section, bool relocatable, Loan& memory, Fatbin& fatbin)
      : section_(section), relocatable_(relocatable), memory_(memory), fatbin_(fatbin) {}

  // Reads the container at `at` and moves `at` behind the part that could be read. Those bytes are
  // not read again, so that nothing is counted twice.
  Result<void> read(std::uint64_t& at) {
    const auto header = TRY(section_.slice(at, container_header, "fat binary header"));
    const auto version = header.u16(4), header_size = header.u16(6);
    if (version != 1 || header_size < container_header) {
      return fail(header.origin(), "fat binary of version " + std::to_string(version) +
                                       " with a header of " + std::to_string(header_size) +
                                       " bytes");
    }
    const auto body = TRY(section_.window(at + header_size, header.u64(8), "fat binary body"));
    const auto body_at = at + header_size;
    if (!memory_.take(sizeof(FatbinContainer)))
      return fail(header.origin(), "more device code than a file of this size justifies");
    fatbin_.containers.push_back(
        {.whole = TRY(section_.window(at, header_size + body.size(), "fat binary")),
         .header_size = header_size});
    for (std::uint64_t next = 0; next < body.size();) {
      next += TRY(read_entry(body, next));
      at = body_at + next;
    }
    at = body_at + body.size();
    fatbin_.containers.back().sound = true;
    return {};
  }

 private:
  // Reads one entry and returns its length.
  Result<std::uint64_t> read_entry(Bytes body, std::uint64_t at) {
    const auto entry = TRY(body.slice(at, entry_header, "fat binary entry"));
    const std::uint64_t header_size = entry.u32(4), padded_size = entry.u64(8),
                        compressed_size = entry.u32(16);
    if (header_size < entry_header)
      return fail(entry.origin(),
                  "fat binary entry with a header of " + std::to_string(header_size) + " bytes");
    TRY(body.slice(at, header_size, "fat binary entry header"));
    const auto payload = TRY(body.window(at + header_size, padded_size, "fat binary payload"));
    const auto flags = entry.u64(40);
    DeviceCode code{.kind = kind_of(entry.u16(0)),
                    .target = target_name(entry.u32(28), flags),
                    .relocatable = relocatable_,
                    .container = fatbin_.containers.size() - 1,
                    .entry = TRY(body.window(at, header_size + padded_size, "entry"))};
    if (compressed_size) {
      code.compression =
          flags & flag_zstd ? DeviceCode::Compression::zstd : DeviceCode::Compression::lz4;
      if (!(flags & (flag_zstd | flag_lz4)))
        return fail(entry.origin(), "fat binary entry compressed in an unknown way");
    }
    code.size = compressed_size ? entry.u64(56) : padded_size;
    code.payload = TRY(
        payload.window(0, compressed_size ? compressed_size : padded_size, "fat binary payload"));
    if (code.kind == CodeKind::ptx)
      code.isa = std::to_string(entry.u16(26)) + "." + std::to_string(entry.u16(24));
    if (!memory_.take(sizeof code))
      return fail(entry.origin(), "more device code than a file of this size justifies");
    fatbin_.codes.push_back(std::move(code));
    return header_size + padded_size;
  }

  Bytes section_;
  bool relocatable_;
  Loan& memory_;
  Fatbin& fatbin_;
};

// Returns the architecture that a cubin names in its ELF flags. CUDA 13 moved it up by a byte and
// says so in the ABI version. The flags know the suffix `a`; `f` is only in the note about the
// compiler's options.
std::string cubin_target(const Elf& elf) {
  constexpr std::uint32_t accelerated_before_13 = 0x800, accelerated = 0x8;
  const bool since_13 = elf.abi_version >= 8;
  auto number = std::to_string(since_13 ? (elf.flags >> 8) & 0xFFFF : elf.flags & 0xFF);
  if (elf.flags & (since_13 ? accelerated : accelerated_before_13)) return number + "a";
  for (const auto& section : elf.sections) {
    if (section.name != ".note.nv.tkinfo") continue;
    const auto note = section.data.whole("note");
    if (note && note->text().find("sm_" + number + "f") != std::string_view::npos)
      return number + "f";
  }
  return number;
}

// Reads .version 8.4 and .target sm_90a: they come before all code, and only comments precede them.
DeviceCode describe_ptx(Bytes file) {
  constexpr std::uint64_t head_size = 16 << 10;
  DeviceCode code{.kind = CodeKind::ptx, .size = file.size(), .payload = file, .entry = file};
  const auto head = file.slice(0, std::min(head_size, file.size()), "PTX");
  if (!head) return code;
  std::string isa;
  for (const auto& text : split(head->text(), '\n')) {
    const auto line = trim(text);
    if (line.starts_with(".version ")) {
      isa = trim(line.substr(9));
      isa.resize(std::min(isa.find_first_not_of("0123456789."), isa.size()));
    } else if (constexpr std::string_view mark = ".target sm_"; line.starts_with(mark)) {
      const auto target = line.substr(mark.size());
      code.target = target.substr(0, target.find_first_not_of("0123456789af"));
      if (!code.target.empty()) code.isa = isa;
      break;
    } else if (!line.empty() && !line.starts_with("//")) {
      break;
    }
  }
  return code;
}

}  // namespace

void read_fatbin(Bytes section, bool relocatable, Loan& memory, Fatbin& fatbin) {
  constexpr std::size_t most_problems = 20;
  section = section.in_little_endian();
  ContainerReader reader(section, relocatable, memory, fatbin);
  bool lost = false;  // among foreign bytes; the next container may still be sound
  auto complain = [&](Error error) {
    if (fatbin.problems.size() < most_problems) fatbin.problems.push_back(std::move(error));
  };
  for (std::uint64_t at = 0; section.size() >= 4 && at <= section.size() - 4;) {
    const auto magic = section.slice(at, 4, "fat binary header");
    if (!magic) return complain(magic.error());
    const auto word = magic->u32(0);
    if (word == container_magic) {
      const auto start = at;
      const auto done = reader.read(at);
      lost = !done;
      if (!done) complain(done.error());
      if (at == start) at += alignment;
      continue;
    }
    if (word != 0 && !lost) {
      complain({section.origin() + at, "no fat binary header here"});
      lost = true;
    }
    at += alignment - at % alignment;
  }
}

Fatbin read_device_code(const Elf& elf, Bytes file, Loan& memory) {
  Fatbin fatbin;
  if (elf.machine == EM_CUDA) {
    fatbin.containers.push_back({.whole = file});
    fatbin.codes.push_back(
        {.target = cubin_target(elf), .size = file.size(), .payload = file, .entry = file});
    return fatbin;
  }
  for (const auto& section : elf.sections) {
    if (section.name == ".nv_fatbin" || section.name == "__nv_relfatbin") {
      read_fatbin(section.data, section.name == "__nv_relfatbin", memory, fatbin);
    }
  }
  if (elf.sections.empty()) {  // no section headers: search, and tolerate foreign bytes
    read_fatbin(file, false, memory, fatbin);
    fatbin.problems.clear();
  }
  return fatbin;
}

bool looks_like_fatbin(Bytes file) {
  const auto start = file.slice(0, container_header, "fat binary header");
  return start && start->u32(0) == container_magic;
}

std::optional<Fatbin> read_loose_code(const std::string& path, Bytes file, Loan& memory) {
  Fatbin fatbin;
  if (looks_like_fatbin(file)) {
    read_fatbin(file, false, memory, fatbin);
    return fatbin;
  }
  if (!path.ends_with(".ptx")) return std::nullopt;
  fatbin.codes.push_back(describe_ptx(file));
  fatbin.containers.push_back({.whole = file});
  return fatbin.codes.front().isa.empty() ? std::nullopt : std::optional(std::move(fatbin));
}

void append(Fatbin& all, Fatbin&& more) {
  for (auto& code : more.codes) code.container += all.containers.size();
  std::ranges::move(more.codes, std::back_inserter(all.codes));
  std::ranges::move(more.containers, std::back_inserter(all.containers));
  std::ranges::move(more.problems, std::back_inserter(all.problems));
}

Result<std::string> decompress(const DeviceCode& code, Loan& memory) {
  const auto text = TRY(code.payload.whole("device code")).text();
  if (code.compression == DeviceCode::Compression::none) return std::string(text);
  if (code.size > largest_code)
    return fail(code.payload.origin(),
                "device code claims " + std::to_string(code.size) + " bytes");
  if (code.compression == DeviceCode::Compression::lz4 && code.size / 255 > text.size()) {
    return fail(code.payload.origin(), "device code claims more than LZ4 can give");
  }
  if (!memory.take(code.size))
    return fail(code.payload.origin(), "device code claims " + std::to_string(code.size) +
                                           " bytes, more than a file of this size justifies");
  std::string output(code.size, '\0');
  if (code.compression == DeviceCode::Compression::zstd) {
    const auto length = ZSTD_decompress(output.data(), output.size(), text.data(), text.size());
    if (ZSTD_isError(length))
      return fail(code.payload.origin(), std::string("zstd: ") + ZSTD_getErrorName(length));
    output.resize(length);
    return output;
  }
  const int length = LZ4_decompress_safe(text.data(), output.data(), static_cast<int>(text.size()),
                                         static_cast<int>(output.size()));
  if (length < 0) return fail(code.payload.origin(), "LZ4: damaged data");
  output.resize(static_cast<std::size_t>(length));
  return output;
}

std::string spelled(CodeKind kind, const std::string& target) {
  switch (kind) {
    case CodeKind::sass:
      return "sm_" + target;
    case CodeKind::ptx:
      return "compute_" + target;
    case CodeKind::lto_ir:
      return "lto_" + target;
    default:
      return "unknown kind for " + target;
  }
}

}  // namespace wheelscope
