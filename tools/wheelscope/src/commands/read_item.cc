// Maps a file, reads it and judges it.
#include "commands/read_item.h"

#include "facts/wheel.h"
#include "report/printable_facts.h"
#include "source/source.h"

namespace wheelscope {
namespace {

Result<Facts> read_facts(const std::string& path, const ScanOptions& options) {
  const auto file = TRY(Source::map(path));
  if (auto facts = read_lone_file(path, file.bytes(), options)) return std::move(*facts);
  auto facts = read_wheel({path, file.bytes()}, options);
  if (!facts)
    return std::unexpected(
        Error{facts.error().offset, path + ": " + facts.error().what + " (at offset " +
                                        std::to_string(facts.error().offset) + ")"});
  return facts;
}

}  // namespace

Result<Item> read_item(const std::string& path, const ScanOptions& options, Texts texts) {
  auto facts = TRY(read_facts(path, options));
  if (texts == Texts::printable) make_printable(facts);
  return examine(std::move(facts));
}

}  // namespace wheelscope
