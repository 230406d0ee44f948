// Each defect of an archive is one problem at one member, and the others are still read. Streams of
// every kind are inflated; their blocks can be joined into other streams.
#include "readers/zip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "fixture.h"
#include "writers/zip_writer.h"

namespace wheelscope {
namespace {

// Returns the ids of all problems of listing and reading.
Ids problems(const Fixture& file, const ZipLimits& limits = {}) {
  Ids found;
  const auto archive = read_zip(file.bytes(), limits).value();
  for (const auto& problem : archive.problems.listed) found.insert(problem.id);
  for (const auto& member : archive.members) {
    if (!member.readable) continue;
    const auto data = read_member(file.bytes(), member);
    if (!data) found.insert(data.error().id);
  }
  return found;
}

TEST(Zip, EachDefectIsOneProblem) {
  const std::pair<std::string, const char*> defects[] = {
      {"prefix", "zip-prefix"},
      {"wrong-crc", "zip-crc"},
      {"crc-differs-in-local-header", "zip-header"},
      {"method-differs-in-local-header", "zip-header"},
      {"size-differs-in-local-header", "zip-header"},
      {"encrypted", "zip-encrypted"},
      {"unknown-method", "zip-method"},
      {"damaged-data", "zip-data"},
      {"inflates-to-less", "zip-size"},
      {"inflates-to-more", "zip-size"},
      {"bomb", "zip-bomb"},
      {"no-local-header", "zip-header"},
      {"other-name-in-local-header", "zip-header"},
      {"local-header-out-of-range", "zip-header"},
      {"overlap", "zip-overlap"},
      {"broken-second-central-header", "zip-directory"},
      {"wrong-count", "zip-directory"},
      {"traversal", "zip-traversal"},
      {"absolute", "zip-traversal"},
      {"drive", "zip-traversal"},
      {"backslash", "zip-traversal"},
      {"duplicate", "zip-duplicate"}};
  for (const auto& [defect, id] : defects)
    EXPECT_EQ(problems(Fixture("zip/" + defect + ".zip")), Ids{id}) << defect;
}

TEST(Zip, ReadsEveryKindOfSoundArchive) {
  for (const auto* name : {"good", "stored", "comment", "zip64", "data-descriptor", "empty"}) {
    EXPECT_EQ(problems(Fixture("zip/" + std::string(name) + ".zip")), Ids{}) << name;
  }
}

TEST(Zip, InflatesToTheContents) {
  for (const auto* name : {"good", "zip64", "data-descriptor"}) {
    const Fixture file("zip/" + std::string(name) + ".zip");
    const auto archive = read_zip(file.bytes()).value();
    for (const auto room : {Room::memory, Room::disk}) {
      const auto data = read_member(file.bytes(), archive.members.front(), room).value();
      EXPECT_EQ(data.bytes().text().substr(0, 12), "hello hello ") << name;
      EXPECT_EQ(data.bytes().size(), 600U);
    }
  }
}

// A wheel of 57 MB may contain a library of 513 MB, but not in memory; one that is compressed a
// hundredfold is not read.
TEST(Zip, FindsRoomForALargeMember) {
  constexpr std::uint64_t mega = 1'000'000, wheel = 57 * mega;
  EXPECT_EQ(room_for({.size = 300 * mega, .method = 8}, wheel), Room::memory);
  EXPECT_EQ(room_for({.size = 513 * mega, .method = 8}, wheel), Room::disk);
  EXPECT_EQ(room_for({.size = 5000 * mega, .method = 8}, wheel), std::nullopt);
  EXPECT_EQ(room_for({.size = 5000 * mega, .method = 0}, wheel), Room::memory);
  ZipMember absurd{.size = std::uint64_t{1} << 60, .method = 8};
  const auto data = read_member(Bytes(), absurd, Room::disk);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().id, "limit");
}

TEST(Zip, NeedsACentralDirectory) {
  for (const auto* name : {"truncated", "empty-file", "directory-out-of-range", "zip64-broken"}) {
    EXPECT_FALSE(read_zip(Fixture("zip/" + std::string(name) + ".zip").bytes())) << name;
  }
}

TEST(Zip, UnpacksNoMoreThanItsLimits) {
  const Fixture file("zip/good.zip");
  EXPECT_EQ(problems(file, {.member_size = 100}), Ids{"zip-bomb"});
  EXPECT_EQ(problems(file, {.total_size = 602}), Ids{"zip-bomb"});
  EXPECT_EQ(problems(file, {.members = 1}), Ids{"zip-directory"});
}

TEST(Zip, TellsTheOffset) {
  const Fixture file("zip/damaged-data.zip");
  const auto archive = read_zip(file.bytes()).value();
  EXPECT_EQ(read_member(file.bytes(), archive.members.front()).error().offset, 35U);
}

using Text = std::string;

std::span<const std::byte> bytes_of(const Text& text) {
  return std::as_bytes(std::span(text));
}

Text deflated(const Text& contents, int level = 6, int strategy = Z_DEFAULT_STRATEGY,
              int memory = 8) {
  z_stream stream{};
  deflateInit2(&stream, level, Z_DEFLATED, -15, memory, strategy);
  Text packed(deflateBound(&stream, contents.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(contents.data()));
  stream.avail_in = static_cast<uInt>(contents.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// Returns nothing if zlib finds the stream damaged or of another size.
std::optional<Text> inflated_by_zlib(const Text& packed, std::size_t size) {
  z_stream stream{};
  inflateInit2(&stream, -15);
  Text contents(size + 1, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(contents.data());
  stream.avail_out = static_cast<uInt>(contents.size());
  const auto code = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  if (code != Z_STREAM_END || stream.total_out != size) return std::nullopt;
  contents.resize(size);
  return contents;
}

std::optional<Text> inflated(const Text& packed, std::size_t size) {
  Text contents(size, '\0');
  const auto blocks = inflate_blocks(bytes_of(packed), std::as_writable_bytes(std::span(contents)));
  if (!blocks) return std::nullopt;
  return contents;
}

// Code, text, noise and repeats at all distances.
Text sample(std::size_t size) {
  std::mt19937 random(7);
  Text contents;
  while (contents.size() < size) {
    const auto kind = random() % 4, length = 1 + random() % 3000;
    if (kind == 0 || contents.empty()) {
      for (unsigned i = 0; i < length; ++i) contents += static_cast<char>(random());
    } else if (kind == 1) {
      contents += Text(length, static_cast<char>(random()));
    } else {
      const auto back = 1 + random() % std::min<std::size_t>(contents.size(), 32768);
      for (unsigned i = 0; i < length; ++i) contents += contents[contents.size() - back];
    }
  }
  contents.resize(size);
  return contents;
}

TEST(InflateBlocks, FillTheRoomExactly) {
  for (const std::size_t size : {0, 1, 2, 7, 300, 65'535, 65'536, 1'000'000}) {
    const auto contents = sample(size);
    for (int level = 0; level <= 9; ++level)
      EXPECT_EQ(inflated(deflated(contents, level), size), contents) << size << " " << level;
    for (const int strategy : {Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED})
      EXPECT_EQ(inflated(deflated(contents, 6, strategy), size), contents) << size;
    EXPECT_EQ(inflated(deflated(contents), size + 1), std::nullopt) << size;
    EXPECT_EQ(inflated(deflated(contents + "."), size), std::nullopt) << size;
  }
}

TEST(DeflateWriter, KeepsTheBlocksOfWhatIsKept) {
  const auto before = sample(3'000'000);
  for (const auto& packed : {deflated(before), deflated(before, 0), deflated(before, 1, Z_FIXED)}) {
    DeflatedOriginal original{.stream = bytes_of(packed), .contents = bytes_of(before)};
    Text room(before.size(), '\0');
    original.blocks =
        inflate_blocks(bytes_of(packed), std::as_writable_bytes(std::span(room))).value();
    Pieces pieces;
    pieces.own("a header");
    pieces.add(original.contents.subspan(8, 1'000'000));
    pieces.add_zeros(100'000);
    pieces.add(original.contents.subspan(1'500'000, 10));
    pieces.add(original.contents.subspan(1'500'011));
    Text output;
    auto keep = [&](std::span<const std::byte> part) -> Result<void> {
      output.append(reinterpret_cast<const char*>(part.data()), part.size());
      return {};
    };
    ASSERT_TRUE(write_deflated(pieces, original, keep));
    const auto joined = pieces.joined();
    EXPECT_EQ(inflated_by_zlib(output, pieces.size()), joined.bytes().text());
    // The output contains blocks from the middle of the last piece, at some bit offset.
    const auto& block = original.blocks[original.blocks.size() * 3 / 4];
    const auto inside = packed.substr(block.first_bit / 8 + 1, 64);
    bool found = false;
    for (unsigned shift = 0; shift < 8; ++shift) {
      Text moved;
      for (std::size_t i = 0; i + 1 < inside.size(); ++i) {
        const auto pair =
            static_cast<unsigned char>(inside[i]) | static_cast<unsigned char>(inside[i + 1]) << 8;
        moved += static_cast<char>(pair >> shift);
      }
      found |= output.find(moved) != Text::npos;
    }
    EXPECT_TRUE(found);
  }
}

}  // namespace
}  // namespace wheelscope
