// How the elements of one or two inputs and one output lie in memory: broadcasting, output strides,
// merged dimensions.
//
// The rules are torch.add's. Inputs broadcast against each other; the output's dimensions are
// ordered in memory as the inputs' are (so channels_last in, channels_last out); dimensions that
// can be walked as one are merged, so that every dense layout becomes a single dimension with
// stride 1.
#pragma once

#include <cstdint>
#include <string>

namespace cuda_ext {

constexpr int max_dims = 25;  // torch's own limit for elementwise ops
constexpr int max_inputs = 2;

struct View {
  const int64_t* sizes;
  const int64_t* strides;  // in elements
  int dims;
};

struct Layout {
  // What the output tensor is: sizes and strides as torch sees them.
  int out_dims;
  int64_t out_sizes[max_dims];
  int64_t out_strides[max_dims];

  // What a kernel walks: merged dimensions, fastest first. The output is dense in this order.
  int dims;
  int64_t numel;
  int64_t sizes[max_dims];
  int64_t strides[max_inputs][max_dims];

  // Every operand is one run of `numel` elements.
  bool is_dense() const;
};

// Fills `layout` for one input (`b` null) or two; returns an error message, empty where there is
// none.
std::string make_layout(const View& a, const View* b, Layout& layout);

}  // namespace cuda_ext
