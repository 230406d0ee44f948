// What each torch on an index exports, read from its wheel once and kept as hashes of names: with
// that, `atlas` asks of every torch what `fit` asks of the installed one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "source/cache.h"
#include "source/http.h"

namespace wheelscope {

struct TorchTable {
  std::string minor, version;                        // 2.14, 2.14.1: its newest release
  std::string cuda;                                  // that the index's build brings; empty: none
  std::vector<std::string> pythons;                  // 3.13, 3.14t: that it has wheels for
  std::vector<std::uint64_t> symbols, cuda_symbols;  // hashes, sorted; the latter of CUDA builds

  bool has(std::string_view symbol, bool with_cuda) const;

  // The builds that there are, of the CUDA versions that the table of CUDA names: cpu, 12, 13.
  std::vector<std::string> builds() const;
};

// All from 2.0 on, for Linux with glibc on an architecture; the oldest first.
Result<std::vector<TorchTable>> read_torch_tables(Http& http, Cache& cache,
                                                  const std::vector<std::string>& indexes,
                                                  const std::string& architecture);

}  // namespace wheelscope
