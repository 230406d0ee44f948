// Compares two files as a loader and a driver see them: by address, and fat binary by fat binary.
#include "answers/thin.h"

#include <algorithm>
#include <cstring>

#include "tables/tables.h"
#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {
namespace {

using Span = std::span<const std::byte>;

bool same_bytes(Span a, Span b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

bool all_zero(Span bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{}; });
}

std::vector<Span> chosen_entries(const DeviceModule& module, const std::string& gpu) {
  const auto choice = choose(module.targets(CodeKind::sass), module.targets(CodeKind::ptx), gpu);
  const auto kind = choice.served == Served::native ? CodeKind::sass : CodeKind::ptx;
  std::vector<Span> entries;
  for (const auto* code : module.codes) {
    if (code->kind == kind && contains(choice.targets, code->target))
      entries.push_back(code->entry.span());
  }
  return entries;
}

void compare_choices(const DeviceModule& original, const DeviceModule* thin, Gpus& served,
                     Gpus& lost) {
  for (const auto& gpu : cuda_table().gpus) {
    const auto before = chosen_entries(original, gpu.capability);
    if (before.empty()) continue;
    served.insert(gpu.capability);
    const auto after = thin ? chosen_entries(*thin, gpu.capability) : std::vector<Span>{};
    if (!std::ranges::equal(before, after, same_bytes)) lost.insert(gpu.capability);
  }
}

// True if every entry of `thin` is in `original`, in the same order.
bool is_part_of(const DeviceModule& thin, const DeviceModule& original) {
  auto next = original.codes.begin();
  for (const auto* code : thin.codes) {
    next = std::find_if(next, original.codes.end(), [&](const DeviceCode* one) {
      return same_bytes(one->entry.span(), code->entry.span());
    });
    if (next == original.codes.end()) return false;
    ++next;
  }
  return true;
}

// The bytes of a file at the addresses of another one.
class Image {
 public:
  Image(Bytes file, const ElfTables& tables) : file_(file.span()), tables_(tables) {}

  // True if memory has these bytes from `address` on, or zeros.
  bool has(std::uint64_t address, Span bytes) const {
    return each_part(address, bytes.size(), [&](std::uint64_t at, std::uint64_t length, Span here) {
      const auto wanted = bytes.subspan(at, length);
      return here.empty() ? all_zero(wanted) : same_bytes(wanted, here);
    });
  }
  bool has_zeros(std::uint64_t address, std::uint64_t size) const {
    return each_part(address, size, [](std::uint64_t, std::uint64_t, Span here) {
      return here.empty() || all_zero(here);
    });
  }

 private:
  // Calls use(at, length, bytes of the file) for each part; a part without bytes is zeros, by
  // p_memsz.
  template <class Use>
  bool each_part(std::uint64_t address, std::uint64_t size, Use use) const {
    for (std::uint64_t at = 0; at < size;) {
      const auto* segment = find(address + at);
      if (!segment) return false;
      const auto into = address + at - segment->p_vaddr;
      const bool from_file = into < segment->p_filesz;
      const auto length =
          std::min(size - at, (from_file ? segment->p_filesz : segment->p_memsz) - into);
      Span here;
      if (from_file) {
        if (segment->p_offset > file_.size() || into > file_.size() - segment->p_offset ||
            length > file_.size() - segment->p_offset - into)
          return false;
        here = file_.subspan(segment->p_offset + into, length);
      }
      if (!use(at, length, here)) return false;
      at += length;
    }
    return true;
  }

  const Elf64_Phdr* find(std::uint64_t address) const {
    for (const auto& one : tables_.segments) {
      if (one.p_type == PT_LOAD && address >= one.p_vaddr && address - one.p_vaddr < one.p_memsz)
        return &one;
    }
    return nullptr;
  }
  Span file_;
  const ElfTables& tables_;
};

bool same_other_segments(const ElfTables& a, const ElfTables& b) {
  auto others = [](const ElfTables& tables) {
    std::vector<Elf64_Phdr> list;
    for (auto one : tables.segments) {
      one.p_offset = 0;
      if (one.p_type != PT_LOAD && one.p_type != PT_PHDR) list.push_back(one);
    }
    return list;
  };
  const auto before = others(a), after = others(b);
  return std::ranges::equal(before, after, [](const Elf64_Phdr& one, const Elf64_Phdr& other) {
    return std::memcmp(&one, &other, sizeof one) == 0;
  });
}

// True if each segment that `b` loads is part of one that `a` loads, with the same rights, except
// for the segment with its program headers, which PT_PHDR must name.
bool loads_no_more(const ElfTables& a, const ElfTables& b) {
  std::size_t others = 0;
  for (const auto& one : b.segments) {
    if (one.p_type != PT_LOAD) continue;
    const bool part = std::ranges::any_of(a.segments, [&](const Elf64_Phdr& whole) {
      return whole.p_type == PT_LOAD && whole.p_flags == one.p_flags &&
             one.p_vaddr >= whole.p_vaddr && one.p_memsz <= whole.p_memsz &&
             one.p_vaddr - whole.p_vaddr <= whole.p_memsz - one.p_memsz;
    });
    if (part) continue;
    const auto& named = b.segments.front();
    if (one.p_flags != PF_R || one.p_offset != b.header.e_phoff || named.p_type != PT_PHDR ||
        named.p_vaddr != one.p_vaddr)
      return false;
    ++others;
  }
  return others <= 1;
}

bool same_sections(Bytes original, Bytes thin, const ElfTables& a, const ElfTables& b,
                   const std::vector<FileRange>& device) {
  if (b.sections.size() != a.sections.size()) return false;
  for (std::size_t i = 0; i < a.sections.size(); ++i) {
    auto before = a.sections[i], after = b.sections[i];
    const FileRange range{before.sh_offset, before.sh_size};
    const bool has_device = std::ranges::any_of(device, [&](const FileRange& one) {
      return one.at >= range.at && one.end() <= range.end();
    });
    if (!has_device && before.sh_type != SHT_NOBITS && before.sh_type != SHT_NULL) {
      const auto left = original.slice(before.sh_offset, before.sh_size, "section");
      const auto right = thin.slice(after.sh_offset, after.sh_size, "section");
      if (!left || !right || !same_bytes(left->span(), right->span())) return false;
    }
    before.sh_offset = after.sh_offset = 0;
    if (has_device) before.sh_size = after.sh_size;
    if (std::memcmp(&before, &after, sizeof before) != 0) return false;
  }
  return true;
}

// Compares all but device code. `device`: fat binaries of the original that lost code; `left`:
// their new lengths.
bool same_host_code(Bytes original, Bytes thin, const std::vector<FileRange>& device,
                    const std::vector<std::uint64_t>& left) {
  const auto a = read_tables(original), b = read_tables(thin);
  const auto outside = between({0, original.size()}, device);
  if (original.size() == thin.size()) {
    for (std::size_t i = 0; i < device.size(); ++i) {
      if (!all_zero(thin.span().subspan(device[i].at + left[i], device[i].size - left[i])))
        return false;
    }
    return std::ranges::all_of(outside, [&](const FileRange& part) {
      return same_bytes(original.span().subspan(part.at, part.size),
                        thin.span().subspan(part.at, part.size));
    });
  }
  if (!a || !b) return false;
  auto header = a->header, other = b->header;
  for (auto* one : {&header, &other}) one->e_phoff = one->e_shoff = one->e_phnum = one->e_shnum = 0;
  if (std::memcmp(&header, &other, sizeof header) != 0 || !same_other_segments(*a, *b) ||
      !loads_no_more(*a, *b) || !same_sections(original, thin, *a, *b, device))
    return false;
  const Image image(thin, *b);
  for (const auto& one : a->segments) {
    if (one.p_type != PT_LOAD) continue;
    for (std::size_t i = 0; i < device.size(); ++i) {
      const bool here =
          device[i].at >= one.p_offset && device[i].end() <= one.p_offset + one.p_filesz;
      if (here && !image.has_zeros(one.p_vaddr + (device[i].at + left[i] - one.p_offset),
                                   device[i].size - left[i]))
        return false;
    }
    for (const auto& part : outside) {
      // The ELF header says where the tables are, and was compared.
      const auto start = std::max({part.at, one.p_offset, std::uint64_t{sizeof(Elf64_Ehdr)}});
      const auto end = std::min(part.end(), one.p_offset + one.p_filesz);
      if (start < end && !image.has(one.p_vaddr + (start - one.p_offset),
                                    original.span().subspan(start, end - start)))
        return false;
    }
  }
  return true;
}

}  // namespace

std::optional<ThinDifference> compare_thinned(const std::string& path, Bytes original, Bytes thin,
                                              Gpus& served, Gpus& lost, Allowance& memory) {
  Loan loan(memory);
  const auto before = read_all_device_code(path, original, loan);
  const auto after = read_all_device_code(path, thin, loan);
  const auto modules = modules_of(before), thin_modules = modules_of(after);
  if (modules.empty())
    return same_bytes(original.span(), thin.span()) ? std::nullopt
                                                    : std::optional(ThinDifference::contents);
  if (modules.size() != thin_modules.size()) return ThinDifference::device_code;
  std::vector<FileRange> device;
  std::vector<std::uint64_t> left;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    if (!is_part_of(thin_modules[i], modules[i])) return ThinDifference::device_code;
    if (!modules[i].codes.empty() && !modules[i].codes.front()->relocatable)
      compare_choices(modules[i], &thin_modules[i], served, lost);
    const auto whole = modules[i].range();
    // Overlapping containers are compared like any other bytes: thinning does not touch them.
    if (modules[i].codes.size() == thin_modules[i].codes.size()) continue;
    device.push_back(whole);
    left.push_back(thin_modules[i].range().size);
    if (left.back() > whole.size) return ThinDifference::device_code;
  }
  if (device.empty())
    return same_bytes(original.span(), thin.span()) ? std::nullopt
                                                    : std::optional(ThinDifference::host_code);
  for (std::size_t i = 1; i < device.size(); ++i) {
    if (device[i].at < device[i - 1].end()) return ThinDifference::device_code;
  }
  const bool lone = device.front() == FileRange{0, original.size()};  // a .fatbin file
  return lone || same_host_code(original, thin, device, left)
             ? std::nullopt
             : std::optional(ThinDifference::host_code);
}

std::optional<ThinDifference> compare_removed(const std::string& path, Bytes original, Gpus& served,
                                              Gpus& lost, Allowance& memory) {
  Loan loan(memory);
  const auto fatbin = read_all_device_code(path, original, loan);
  const bool loose = fatbin.containers.size() == 1 && fatbin.codes.size() == 1 &&
                     fatbin.containers.front().header_size == 0;
  if (!loose) return ThinDifference::missing;
  compare_choices(modules_of(fatbin).front(), nullptr, served, lost);
  return std::nullopt;
}

}  // namespace wheelscope
