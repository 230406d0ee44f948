// Extracts device code.
#include "commands/dump.h"

#include <algorithm>
#include <cstdio>

#include "readers/archive.h"
#include "readers/fatbin.h"
#include "text/text.h"

namespace wheelscope {
namespace {

std::string numbered(std::size_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%04zu", number);
  return text;
}

class Extractor {
 public:
  Extractor(CodeKind kind, const std::function<void(const ExtractedCode&)>& use, Allowance& memory,
            ProblemList& problems)
      : kind_(kind), use_(use), memory_(memory), problems_(problems) {}

  void extract(const std::string& path, Bytes file) {
    std::size_t number = 0;
    if (looks_like_archive(file)) {
      const auto done =
          for_each_member(file, [&](Bytes member) { extract_from(path, member, number); });
      if (!done) problems_.add("archive-broken", path, done.error());
    } else {
      extract_from(path, file, number);
    }
  }

 private:
  void extract_from(const std::string& path, Bytes file, std::size_t& number) {
    Loan loan(memory_);
    Fatbin fatbin;
    if (looks_like_elf(file)) {
      const auto elf = read_elf(file, loan);
      if (!elf) return problems_.add("elf-broken", path, elf.error());
      fatbin = read_device_code(*elf, file, loan);
    } else if (looks_like_fatbin(file)) {
      read_fatbin(file, false, loan, fatbin);
    } else if (path.ends_with(".ptx") && looks_like_ptx(file)) {
      fatbin.codes.push_back(describe_ptx(file));
    }
    for (const auto& problem : fatbin.problems) problems_.add("fatbin-broken", path, problem);
    for (const auto& code : fatbin.codes) {
      if (code.kind == kind_) extract_one(path, code, ++number);
    }
  }

  void extract_one(const std::string& path, const DeviceCode& code, std::size_t number) {
    Loan loan(memory_);
    auto contents = decompress(code, loan);
    if (!contents) return problems_.add("fatbin-broken", path, contents.error());
    const bool ptx = kind_ == CodeKind::ptx;
    if (ptx) contents->resize(std::min(contents->find('\0'), contents->size()));
    use_({path + "." + numbered(number) + "." + spelled(kind_, code.target) +
              (ptx ? ".ptx" : ".cubin"),
          std::move(*contents)});
  }

  CodeKind kind_;
  const std::function<void(const ExtractedCode&)>& use_;
  Allowance& memory_;
  ProblemList& problems_;
};

}  // namespace

Result<void> extract_code(const WheelInput& input, CodeKind kind,
                          const std::function<void(const ExtractedCode&)>& use,
                          ProblemList& problems) {
  const auto budget = Allowance::contents_for(input.bytes.size());
  Allowance memory(budget);
  Extractor extractor(kind, use, memory, problems);
  if (looks_like_elf(input.bytes) || looks_like_archive(input.bytes) ||
      looks_like_fatbin(input.bytes) || (input.path.ends_with(".ptx"))) {
    extractor.extract(base_name(input.path), input.bytes);
    return {};
  }
  const auto archive = TRY(read_zip(input.bytes));
  for (const auto& member : archive.members) {
    if (!member.readable || member.is_folder()) continue;
    Loan loan(memory);
    const auto room = room_for(member, input.bytes.size());
    if (!room || (room == Room::memory && member.method != 0 && !loan.take(member.size))) {
      problems.add({.id = "limit",
                    .place = member.name,
                    .what = "inflates to more than a wheel of this size justifies"});
      continue;
    }
    if (const auto data = read_member(input.bytes, member, *room))
      extractor.extract(member.name, data->bytes());
    else
      problems.add(data.error());
  }
  return {};
}

}  // namespace wheelscope
