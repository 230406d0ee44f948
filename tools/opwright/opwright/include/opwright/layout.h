// How the elements of an elementwise op's inputs and output lie in memory: broadcasting, output
// strides, merged dimensions.
//
// The rules are torch.add's. Inputs broadcast against each other; the output's dimensions are
// ordered in memory as the inputs' are (so channels_last in, channels_last out); dimensions that
// can be walked as one are merged, so that every dense layout becomes a single dimension with
// stride 1.
#pragma once

#include <cstdint>
#include <string>

namespace opwright {

constexpr int max_dims = 25;  // torch's own limit for elementwise ops
constexpr int max_inputs = 3;

struct View {
  const int64_t* sizes;
  const int64_t* strides;  // in elements
  int dims;
};

struct Layout {
  // The output tensor's sizes and strides, as torch sees them.
  int out_dims;
  int64_t out_sizes[max_dims];
  int64_t out_strides[max_dims];

  // The dimensions that a kernel walks: merged, at least one, fastest first. The output is dense in
  // this order.
  int inputs;
  int dims;
  int64_t numel;
  int64_t sizes[max_dims];
  int64_t strides[max_inputs][max_dims];

  // Whether every operand is one run of `numel` elements.
  bool is_dense() const;

  // Cuts the slowest dimension of more than one element in two, at a multiple of `step` if it is
  // long enough.
  void split(int64_t step, Layout& front, Layout& back) const;
};

// A layout in which every operand is one run of `numel` elements.
Layout dense_layout(int inputs, int64_t numel);

// The layout of operands of one shape with a contiguous output: neighbouring dimensions are merged,
// and none is moved.
Layout contiguous_layout(const View* views, int inputs);

// Fills `layout`; returns an error message, or an empty string.
std::string make_layout(const View* views, int inputs, Layout& layout);

}  // namespace opwright
