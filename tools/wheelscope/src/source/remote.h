// A file by its address as a source: of one on a web server, bytes are fetched when a reader asks
// for them.
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
  std::optional<std::uint64_t> size = {};  // according to an index
};

class Remote {
 public:
  // Opens a file by fetching its end, which tells its size. `all`: every byte is wanted, and their
  // hash must be right. A file on a server without ranges is read that way too.
  static Result<Remote> open(Http& http, Cache& cache, const RemoteFile& file, bool all = false);

  // Requests what open() will need first, without waiting for it.
  static void expect(Http& http, const Cache& cache, const RemoteFile& file);

  Bytes bytes() const { return source_.bytes(); }
  bool is_whole() const { return !ranges_; }  // every byte was read

  // Number of bytes read, over the network or from the cache.
  std::uint64_t read() const;

  // Why bytes were withheld; empty if none were.
  std::string failure() const;

 private:
  struct Ranges;

  static Result<Remote> download(Http& http, const RemoteFile& file);

  std::shared_ptr<Ranges> ranges_;  // none: the file was read whole
  Source source_;
};

}  // namespace wheelscope
