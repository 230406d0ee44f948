// A file on a web server as a source: its bytes are fetched when a reader asks for them.
#pragma once

#include <memory>
#include <string>

#include "source/cache.h"
#include "source/http.h"
#include "source/source.h"

namespace wheelscope {

struct RemoteFile {
  std::string url;
  std::string sha256;                      // in hexadecimal; empty: not known
  std::optional<std::uint64_t> size = {};  // that an index says it has
};

class Remote {
 public:
  // Asks for the end of the file, which says how large it is. `all`: every byte is wanted, and
  // their hash must be right. A server that gives no ranges is read that way too.
  static Result<Remote> open(Http& http, Cache& cache, const RemoteFile& file, bool all = false);

  // Asks for what open() will need first, without waiting for it.
  static void expect(Http& http, const Cache& cache, const RemoteFile& file);

  Bytes bytes() const { return source_.bytes(); }
  bool is_whole() const { return !ranges_; }  // every byte was read

  // Bytes that were read, over the network or from the cache.
  std::uint64_t read() const;

  // Why bytes were withheld; empty: they were not.
  std::string failure() const;

 private:
  struct Ranges;

  static Result<Remote> download(Http& http, const RemoteFile& file);

  std::shared_ptr<Ranges> ranges_;  // none: the file was read whole
  Source source_;
};

}  // namespace wheelscope
