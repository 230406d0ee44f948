// The CUDA engine for elementwise ops: one function object, every layout.
//
//   dense      every operand is one aligned run of elements: 16 bytes per thread
//   rows       every input is contiguous or constant along the rows, and the rows are aligned:
//              broadcast rows, columns and scalars, rows with gaps
//   ragged     the same inputs, with rows of any length that start anywhere
//   tiles      inputs that are contiguous along another dimension: see elementwise_tiles.cuh
//   strided    anything else: one element at a time, usually two per thread
//
// elementwise_plan.cuh chooses among them.
//
// One vector per thread is enough for the dense kernel: with enough threads in flight, more vectors
// gain nothing (measured on an H200: 4.36 TB/s with one, 4.34 with two, 4.28 with four).
#pragma once

#define OPWRIGHT_DEFINE(op)                                                   \
  OPWRIGHT_ON_CUDA(op) {                                                      \
    return elementwise_on_cuda<op>(dtype, operands, numbers, layout, stream); \
  }
#include "elementwise.h"
#include "elementwise_plan.cuh"
#include "elementwise_tiles.cuh"

namespace opwright {

// --- dense -------------------------------------------------------

template <typename T, int inputs, int outputs, typename Function>
__global__ void dense_kernel(Function function, Inputs<inputs> in, Outputs<T, outputs> out,
                             int64_t n) {
  int64_t at = thread_index() * Vector<T>::size;
  if (at + Vector<T>::size <= n) {
    uint4 x[inputs];
#pragma unroll
    for (int i = 0; i < inputs; ++i)
      x[i] = *reinterpret_cast<const uint4*>(in.input[i].template elements<T>() + at);
    apply_and_store(function, x, out, at);
  } else {
#pragma unroll 1
    for (; at < n; ++at) {  // the tail, shorter than a vector
      T elements[inputs];
#pragma unroll
      for (int i = 0; i < inputs; ++i) elements[i] = in.input[i].template elements<T>()[at];
      apply_and_store(function, elements, out, at);
    }
  }
}

// --- rows --------------------------------------------------------

// One element in every place of a vector.
template <typename T>
__device__ __forceinline__ uint4 repeat(T element) {
  uint4 bytes;
  if constexpr (sizeof(T) <= 4) {
    uint32_t word = 0;
    memcpy(&word, &element, sizeof(T));
    if (sizeof(T) == 1) word *= 0x01010101u;
    if (sizeof(T) == 2) word *= 0x00010001u;
    bytes = {word, word, word, word};
  } else {
    Vector<T> vector;
#pragma unroll
    for (int e = 0; e < Vector<T>::size; ++e) vector.element[e] = element;
    bytes = *reinterpret_cast<const uint4*>(&vector);
  }
  return bytes;
}

// A thread writes the same columns of several rows: it computes its position once, and an input
// that is the same in all of these rows is loaded once. All loads are issued before the first
// result is computed, so that they wait for memory together.
template <int rows_each, typename T, int inputs, int outputs, typename Function>
__global__ void rows_kernel(Function function, Inputs<inputs> in, Outputs<T, outputs> out,
                            uint32_t n, Walk<inputs> walk, Divider row_vectors,
                            Divider row_groups) {
  constexpr uint32_t size = Vector<T>::size;
  const auto unit = static_cast<uint32_t>(thread_index());
  const uint32_t group = row_vectors.divide(unit);
  const uint32_t column = (unit - group * row_vectors.divisor) * size;
  const uint32_t outer = walk.dims > 2 ? row_groups.divide(group) : 0;
  const uint32_t row = (group - outer * row_groups.divisor) * rows_each;
  const uint32_t row_length = walk.sizes[0].divisor, rows = walk.sizes[1].divisor;
  const uint32_t first = (outer * rows + row) * row_length + column;
  if (row >= rows || first >= n) return;
  int64_t offsets[inputs] = {};
  if (walk.dims > 2) walk.add_offsets(outer, 2, offsets);

  uint4 x[inputs][rows_each];
#pragma unroll
  for (int i = 0; i < inputs; ++i) {
    const int64_t step = walk.strides[i][1];
    const T* from = in.input[i].template elements<T>() + offsets[i] + row * step;
    if (walk.strides[i][0] == 0) {
      T element[rows_each];
#pragma unroll
      for (int k = 0; k < rows_each; ++k)
        if (row + k < rows) element[k] = from[k * step];
#pragma unroll
      for (int k = 0; k < rows_each; ++k) x[i][k] = repeat(element[k]);
    } else {
      from += column;
#pragma unroll
      for (int k = 0; k < rows_each; ++k) {
        if (row + k < rows && first + k * row_length + size <= n)
          x[i][k] = *reinterpret_cast<const uint4*>(from + k * step);
      }
    }
  }
#pragma unroll
  for (int k = 0; k < rows_each; ++k) {
    const uint32_t at = first + k * row_length;
    if (row + k >= rows || at >= n) return;
    if (at + size <= n) {
      uint4 y[inputs];
#pragma unroll
      for (int i = 0; i < inputs; ++i) y[i] = x[i][k];
      apply_and_store(function, y, out, at);
    } else {
#pragma unroll 1
      for (uint32_t e = at; e < n; ++e) {  // the tail of a single row
        T tail[inputs];
#pragma unroll
        for (int i = 0; i < inputs; ++i)
          tail[i] = in.input[i].template elements<T>()[e * walk.strides[i][0]];
        apply_and_store(function, tail, out, e);
      }
    }
  }
}

// --- ragged ------------------------------------------------------

// The two aligned pieces of memory that hold 16 bytes of an input.
struct Pieces {
  uint4 low, high;
  unsigned offset;  // of the 16 bytes in `low`
};

// Whether both pieces lie within the input: nothing outside it is ever read.
template <typename T>
__device__ __forceinline__ bool has_pieces(const Input& input, const T* from) {
  const char* low = reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(from) / 16 * 16);
  return low >= input.begin && low + 32 <= input.end;
}

template <typename T>
__device__ __forceinline__ Pieces load_pieces(const T* from) {
  const auto address = reinterpret_cast<uintptr_t>(from);
  const auto* low = reinterpret_cast<const uint4*>(address / 16 * 16);
  return {low[0], low[1], static_cast<unsigned>(address % 16)};
}

template <typename T>
__device__ __forceinline__ uint4 cut_vector(const Pieces& pieces) {
  uint32_t w[8] = {pieces.low.x,  pieces.low.y,  pieces.low.z,  pieces.low.w,
                   pieces.high.x, pieces.high.y, pieces.high.z, pieces.high.w};
  if (pieces.offset & 8) {
#pragma unroll
    for (int k = 0; k < 6; ++k) w[k] = w[k + 2];
  }
  if (sizeof(T) <= 4 && (pieces.offset & 4)) {
#pragma unroll
    for (int k = 0; k < 5; ++k) w[k] = w[k + 1];
  }
  if (sizeof(T) <= 2) {
#pragma unroll
    for (int k = 0; k < 4; ++k) w[k] = __funnelshift_r(w[k], w[k + 1], pieces.offset % 4 * 8);
  }
  return {w[0], w[1], w[2], w[3]};
}

// Rows of any length that start anywhere. A vector of output elements is computed element by
// element if it crosses the end of a row or if its pieces would reach outside an input.
template <typename T, int inputs, int outputs, typename Function>
__global__ void __launch_bounds__(threads_per_block, 8)
    ragged_kernel(Function function, Inputs<inputs> in, Outputs<T, outputs> out, uint32_t n,
                  Walk<inputs> walk) {
  constexpr uint32_t size = Vector<T>::size;
  const uint32_t first = static_cast<uint32_t>(thread_index()) * size;
  if (first >= n) return;
  int64_t offsets[inputs] = {};
  uint32_t column = first;
  if (walk.dims > 1) {
    const uint32_t row = walk.sizes[0].divide(first);
    column -= row * walk.sizes[0].divisor;
    walk.add_offsets(row, 1, offsets);
  }
  bool is_whole = column + size <= walk.sizes[0].divisor;
  const T* from[inputs];
#pragma unroll
  for (int i = 0; i < inputs; ++i) {
    const bool is_row = walk.strides[i][0] != 0;
    from[i] = in.input[i].template elements<T>() + offsets[i] + (is_row ? column : 0);
    is_whole &= !is_row || has_pieces(in.input[i], from[i]);
  }
  if (is_whole) {
    Pieces pieces[inputs];
    T elements[inputs];
#pragma unroll
    for (int i = 0; i < inputs; ++i) {
      if (walk.strides[i][0] == 0) {
        elements[i] = *from[i];
      } else {
        pieces[i] = load_pieces(from[i]);
      }
    }
    uint4 x[inputs];
#pragma unroll
    for (int i = 0; i < inputs; ++i)
      x[i] = walk.strides[i][0] == 0 ? repeat(elements[i]) : cut_vector<T>(pieces[i]);
    apply_and_store(function, x, out, first);
  } else {
#pragma unroll 1
    for (uint32_t at = first; at < min(first + size, n); ++at) {
      T elements[inputs];
#pragma unroll
      for (int i = 0; i < inputs; ++i) offsets[i] = 0;
      walk.add_offsets(at, 0, offsets);
#pragma unroll
      for (int i = 0; i < inputs; ++i) elements[i] = in.input[i].template elements<T>()[offsets[i]];
      apply_and_store(function, elements, out, at);
    }
  }
}

// --- strided -----------------------------------------------------

// A thread's elements are a block's width apart.
template <int elements_each, typename T, int inputs, int outputs, typename Function>
__global__ void strided_kernel(Function function, Inputs<inputs> in, Outputs<T, outputs> out,
                               uint32_t n, Walk<inputs> walk) {
  const uint32_t first = blockIdx.x * (threads_per_block * elements_each) + threadIdx.x;
  T elements[elements_each][inputs];
#pragma unroll
  for (int k = 0; k < elements_each; ++k) {
    const uint32_t at = first + k * threads_per_block;
    if (at >= n) break;
    int64_t offsets[inputs] = {};
    walk.add_offsets(at, 0, offsets);
#pragma unroll
    for (int i = 0; i < inputs; ++i)
      elements[k][i] = in.input[i].template elements<T>()[offsets[i]];
  }
#pragma unroll
  for (int k = 0; k < elements_each; ++k) {
    const uint32_t at = first + k * threads_per_block;
    if (at >= n) break;
    apply_and_store(function, elements[k], out, at);
  }
}

// --- the launch --------------------------------------------------

template <int inputs, int outputs, bool few, typename T, typename Function>
cudaError_t run(const Function& function, const Operands& operands, const Layout& layout,
                Stream stream) {
  constexpr Kernels kernels = kernels_for(sizeof(T), inputs, few);
  if (layout.numel > max_walk && !(kernels.dense && is_dense<inputs, outputs>(operands, layout))) {
    const Halves halves = halve<inputs, outputs>(operands, layout, sizeof(T));
    const auto half = [&](int i) {
      return run<inputs, outputs, few, T>(function, halves.operands[i], halves.layouts[i], stream);
    };
    const cudaError_t error = half(0);
    return error == cudaSuccess ? half(1) : error;
  }
  const auto plan = make_plan<inputs, outputs>(operands, layout, sizeof(T), kernels);
  Outputs<T, outputs> out;
  for (int o = 0; o < outputs; ++o) out.output[o] = static_cast<T*>(operands.out[o]);
  const auto n = static_cast<uint32_t>(layout.numel);
  if constexpr (kernels.dense) {
    if (plan.path == Path::dense)
      return launch<dense_kernel<T, inputs, outputs, Function>>(plan.grid, stream, function,
                                                                plan.in, out, layout.numel);
  }
  if constexpr (kernels.rows) {
    if (plan.path == Path::rows)
      return launch<rows_kernel<kernels.rows_each, T, inputs, outputs, Function>>(
          plan.grid, stream, function, plan.in, out, n, plan.walk, plan.row_vectors,
          plan.row_groups);
  }
  if constexpr (kernels.ragged) {
    if (plan.path == Path::ragged)
      return launch<ragged_kernel<T, inputs, outputs, Function>>(plan.grid, stream, function,
                                                                 plan.in, out, n, plan.walk);
  }
  if constexpr (kernels.tiles) {
    if (plan.path == Path::tiles)
      return launch<tiles_kernel<T, inputs, outputs, Function>>(
          plan.grid, stream, function, plan.in, out, plan.tile_walk, plan.across, plan.down,
          plan.transposed);
  }
  return launch<strided_kernel<kernels.elements_each, T, inputs, outputs, Function>>(
      plan.grid, stream, function, plan.in, out, n, plan.walk);
}

template <typename Op>
cudaError_t elementwise_on_cuda(DType dtype, const Operands& operands, const Scalar* numbers,
                                const Layout& layout, Stream stream) {
  if constexpr (has_own_dense<Op>) {
    if (!layout.is_dense())
      return on_cuda(typename Op::OtherLayouts{}, dtype, operands, numbers, layout, stream);
  }
  return with_element_type<Op::dtypes.bits, cudaError_t>(dtype, [&](auto element) {
    using T = typename KernelElement<Op, decltype(element)>::Type;
    using C = Compute<T>;
    if constexpr (has_own_dense<Op>) {
      return Op::template dense<T>(operands, layout.numel, stream);
    } else {
      const auto function =
          make_function<Op, C>(numbers, [](const Scalar& number) { return number.as<C>(); });
      return run<inputs_of<Op>, outputs_of<Op>, has_few_kernels<Op>, T>(function, operands, layout,
                                                                        stream);
    }
  });
}

}  // namespace opwright
