// The zip reader: the members of an archive, what is wrong with it, and the bytes of a member.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bytes.h"

namespace wheelscope {

// Sizes that an archive may claim; what goes beyond is a problem and is not read.
struct ZipLimits {
  std::uint64_t members = 1'000'000;
  std::uint64_t member_size = std::uint64_t{8} << 30;
  std::uint64_t total_size = std::uint64_t{64} << 30;
};

struct ZipMember {
  std::string name;
  std::uint64_t header_offset = 0;  // of the local header
  std::uint64_t data_offset = 0;
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  std::uint32_t crc32 = 0;
  std::uint16_t method = 0;  // 0 stored, 8 deflated
  bool readable = true;      // false: a problem says why its bytes cannot be had

  bool is_folder() const { return name.ends_with('/'); }
};

struct ZipProblem {
  std::string id;  // a finding's id: zip-duplicate, zip-crc ...
  std::string member;
  Error error;
};

struct ZipArchive {
  std::vector<ZipMember> members;  // in the order of the central directory
  std::vector<ZipProblem> problems;
};

// Fails only when there is no central directory to read; all else is a problem of a member.
Result<ZipArchive> read_zip(Bytes file, const ZipLimits& limits = {});

// The contents of a member: a view into the archive (stored) or memory of its own (deflated).
class MemberData {
 public:
  MemberData() = default;
  explicit MemberData(Bytes view) : view_(view) {}
  static MemberData allocate(std::uint64_t size);

  Bytes bytes() const { return view_; }
  std::span<std::byte> writable() { return {owned_.get(), view_.size()}; }

 private:
  struct Free {
    std::uint64_t mapped;  // bytes from mmap; 0: from malloc
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte[], Free> owned_;
  Bytes view_;
};

// Inflates and checks size and CRC.
std::expected<MemberData, ZipProblem> read_member(Bytes file, const ZipMember& member);

}  // namespace wheelscope
