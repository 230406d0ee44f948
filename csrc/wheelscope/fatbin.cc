// Reads CUDA fat binaries, a format without a public spec: what follows was read off real wheels
// and cuobjdump.
//
// Section .nv_fatbin (and __nv_relfatbin, for relocatable device code) holds containers back to
// back, 8-byte aligned:
//   container: u32 magic, u16 version 1, u16 header size, u64 body size; the body is a row of
//   entries entry: +0 u16 kind (1 PTX, 2 ELF), +4 u32 header size, +8 u64 padded payload size, +16
//   u32 compressed size (0: raw),
//          +24 u16 minor, +26 u16 major (PTX: of the ISA), +28 u32 architecture, +32/+36 u32 name
//          offset and length, +40 u64 flags, +56 u64 uncompressed size; the payload follows the
//          header
// All little-endian, whatever the machine.
#include "fatbin.h"

#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>

namespace wheelscope {
namespace {

constexpr std::uint32_t container_magic = 0xBA55ED50;
constexpr std::uint64_t container_header = 16, entry_header = 64, alignment = 8;
constexpr std::uint64_t flag_lz4 = 0x2000, flag_zstd = 0x8000, flag_a = 0x100000, flag_f = 0x200000;
constexpr std::uint64_t largest_code = std::uint64_t{1} << 30;

std::unexpected<Error> fail(std::uint64_t offset, std::string what) {
  return std::unexpected(Error{offset, std::move(what)});
}

std::string target_name(std::uint64_t arch, std::uint64_t flags) {
  return std::to_string(arch) + (flags & flag_a ? "a" : flags & flag_f ? "f" : "");
}

// Reads one entry and returns how long it is.
Result<std::uint64_t> read_entry(Bytes body, std::uint64_t at, bool relocatable, Fatbin& fatbin) {
  const auto entry = TRY(body.slice(at, entry_header, "fat binary entry"));
  const std::uint64_t header_size = entry.u32(4), padded_size = entry.u64(8),
                      compressed_size = entry.u32(16);
  if (header_size < entry_header)
    return fail(entry.origin(),
                "fat binary entry with a header of " + std::to_string(header_size) + " bytes");
  const auto header = TRY(body.slice(at, header_size, "fat binary entry header"));
  const auto payload = TRY(body.slice(at + header_size, padded_size, "fat binary payload"));
  const auto kind = entry.u16(0);
  const auto flags = entry.u64(40);
  if (kind == 1 || kind == 2) {
    DeviceCode code{.kind = kind == 1 ? DeviceCode::Kind::ptx : DeviceCode::Kind::sass,
                    .target = target_name(entry.u32(28), flags),
                    .relocatable = relocatable};
    if (compressed_size) {
      code.compression =
          flags & flag_zstd ? DeviceCode::Compression::zstd : DeviceCode::Compression::lz4;
      if (!(flags & (flag_zstd | flag_lz4)))
        return fail(entry.origin(), "fat binary entry compressed in an unknown way");
    }
    code.size = compressed_size ? entry.u64(56) : padded_size;
    code.payload = TRY(
        payload.slice(0, compressed_size ? compressed_size : padded_size, "fat binary payload"));
    if (kind == 1) code.isa = std::to_string(entry.u16(26)) + "." + std::to_string(entry.u16(24));
    if (auto name = header.slice(entry.u32(32), entry.u32(36), "name");
        name && entry.u32(32) >= entry_header) {
      code.name = name->text().substr(0, name->text().find('\0'));
    }
    fatbin.codes.push_back(std::move(code));
  }
  return header_size + padded_size;
}

Result<std::uint64_t> read_container(Bytes section, std::uint64_t at, bool relocatable,
                                     Fatbin& fatbin) {
  const auto header = TRY(section.slice(at, container_header, "fat binary header"));
  const auto version = header.u16(4), header_size = header.u16(6);
  if (version != 1 || header_size < container_header) {
    return fail(header.origin(), "fat binary of version " + std::to_string(version) +
                                     " with a header of " + std::to_string(header_size) + " bytes");
  }
  const auto body = TRY(section.slice(at + header_size, header.u64(8), "fat binary body"));
  for (std::uint64_t next = 0; next < body.size();)
    next += TRY(read_entry(body, next, relocatable, fatbin));
  return header_size + body.size();
}

// A cubin names its architecture in its ELF flags; CUDA 13 moved it up by a byte and says so in the
// ABI version.
std::string cubin_target(const Elf& elf, Bytes file) {
  const auto abi_version = file.size() > EI_ABIVERSION ? file.u8(EI_ABIVERSION) : 0;
  return std::to_string(abi_version >= 8 ? (elf.flags >> 8) & 0xFFFF : elf.flags & 0xFF);
}

}  // namespace

void read_fatbin(Bytes section, bool relocatable, Fatbin& fatbin) {
  section = Bytes(section.span(), section.origin());  // little-endian, whatever the machine
  bool lost = false;  // among foreign bytes; the next container may still be sound
  for (std::uint64_t at = 0; section.size() >= 4 && at <= section.size() - 4;) {
    const auto word = section.u32(at);
    if (word == container_magic) {
      const auto length = read_container(section, at, relocatable, fatbin);
      lost = !length;
      if (!length) fatbin.problems.push_back(length.error());
      at += length ? *length : alignment;
      continue;
    }
    if (word != 0 && !lost) {
      fatbin.problems.push_back({section.origin() + at, "no fat binary header here"});
      lost = true;
    }
    at += alignment - at % alignment;
  }
}

Fatbin read_device_code(const Elf& elf, Bytes file) {
  Fatbin fatbin;
  if (elf.machine == EM_CUDA) {
    fatbin.codes.push_back(
        {.target = cubin_target(elf, file), .size = file.size(), .payload = file});
    return fatbin;
  }
  for (const auto& section : elf.sections) {
    if (section.name == ".nv_fatbin" || section.name == "__nv_relfatbin") {
      read_fatbin(section.data, section.name == "__nv_relfatbin", fatbin);
    }
  }
  if (elf.sections
          .empty()) {  // stripped of section headers: search, and take foreign bytes for granted
    read_fatbin(file, false, fatbin);
    fatbin.problems.clear();
  }
  return fatbin;
}

Result<std::string> decompress(const DeviceCode& code) {
  const auto text = code.payload.text();
  if (code.compression == DeviceCode::Compression::none) return std::string(text);
  if (code.size > largest_code)
    return fail(code.payload.origin(),
                "device code claims " + std::to_string(code.size) + " bytes");
  if (code.compression == DeviceCode::Compression::lz4 && code.size / 255 > text.size()) {
    return fail(code.payload.origin(), "device code claims more than LZ4 can give");
  }
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

const char* name_of(DeviceCode::Kind kind) {
  return kind == DeviceCode::Kind::ptx ? "ptx" : "sass";
}

const char* name_of(DeviceCode::Compression compression) {
  switch (compression) {
    case DeviceCode::Compression::lz4:
      return "lz4";
    case DeviceCode::Compression::zstd:
      return "zstd";
    default:
      return "none";
  }
}

}  // namespace wheelscope
