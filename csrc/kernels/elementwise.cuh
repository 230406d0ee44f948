// The CUDA engine for elementwise ops: one function object, every layout, at the speed of memory.
//
//   dense      every operand is one aligned run of elements: 16 bytes a thread
//   rows       every input is contiguous or constant along the rows, and the rows are aligned:
//              broadcast rows, columns and scalars, rows with gaps
//   ragged     the same for rows of any length that start anywhere
//   strided    anything else: one element at a time, two of them a thread
//
// One vector a thread suffices for the dense kernel: with enough threads in flight, more vectors a
// thread gain nothing (measured on an H200: 4.36 TB/s with one, 4.34 with two, 4.28 with four).
#pragma once

#include "launch.cuh"
#include "walk.cuh"

#define CUDA_EXT_DEFINE(op)                                                   \
  CUDA_EXT_ON_CUDA(op) {                                                      \
    return elementwise_on_cuda<op>(dtype, operands, numbers, layout, stream); \
  }
#include "elementwise.h"

namespace cuda_ext {

// An input: its elements, and the bytes in which they all lie.
template <typename T>
struct Input {
  const T* data;
  const char *begin, *end;
};

template <typename T, int inputs>
struct Inputs {
  Input<T> input[inputs];
};

template <typename Function, typename T, size_t... I>
__device__ __forceinline__ T apply(const Function& function, const T* elements,
                                   std::index_sequence<I...>) {
  return store<T>(function(load(elements[I])...));
}
// The function's result for one element of each input.
template <typename T, int inputs, typename Function>
__device__ __forceinline__ T apply(const Function& function, const T (&elements)[inputs]) {
  return apply(function, elements, std::make_index_sequence<inputs>{});
}

template <typename T, int inputs, typename Function>
__device__ __forceinline__ void apply_and_store(const Function& function,
                                                const Vector<T> (&x)[inputs], T* out) {
  Vector<T> result;
#pragma unroll
  for (int e = 0; e < Vector<T>::size; ++e) {
    T elements[inputs];
#pragma unroll
    for (int i = 0; i < inputs; ++i) elements[i] = x[i].element[e];
    result.element[e] = apply(function, elements);
  }
  *reinterpret_cast<Vector<T>*>(out) = result;
}

// --- dense
// ----------------------------------------------------------------------------------------

template <typename T, int inputs, typename Function>
__global__ void dense_kernel(Function function, Inputs<T, inputs> in, T* out, int64_t n) {
  int64_t at = thread_index() * Vector<T>::size;
  if (at + Vector<T>::size <= n) {
    Vector<T> x[inputs];
#pragma unroll
    for (int i = 0; i < inputs; ++i)
      x[i] = *reinterpret_cast<const Vector<T>*>(in.input[i].data + at);
    apply_and_store(function, x, out + at);
  } else {
    for (; at < n; ++at) {  // the tail, shorter than a vector
      T elements[inputs];
#pragma unroll
      for (int i = 0; i < inputs; ++i) elements[i] = in.input[i].data[at];
      out[at] = apply(function, elements);
    }
  }
}

// --- rows
// -----------------------------------------------------------------------------------------

// More rows a thread gain little where elements are wide, and cost code.
template <typename T>
constexpr int rows_per_thread = sizeof(T) == 1 ? 4 : 2;

// A vector's bytes. Vectors wait as bytes for their turn: as elements, each would take a register.
template <typename T>
__device__ __forceinline__ Vector<T> as_vector(const uint4& bytes) {
  return *reinterpret_cast<const Vector<T>*>(&bytes);
}

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

// A thread writes the same columns of several rows: it finds its place once, and an input that is
// the same in all of these rows is loaded once. All loads are issued before the first result is
// computed, so that they wait for memory together.
template <typename T, int inputs, typename Function>
__global__ void rows_kernel(Function function, Inputs<T, inputs> in, T* out, uint32_t n,
                            Walk<inputs> walk, Divider row_vectors, Divider row_groups) {
  constexpr uint32_t size = Vector<T>::size;
  constexpr int rows_each = rows_per_thread<T>;
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
    const T* from = in.input[i].data + offsets[i] + row * step;
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
      Vector<T> y[inputs];
#pragma unroll
      for (int i = 0; i < inputs; ++i) y[i] = as_vector<T>(x[i][k]);
      apply_and_store(function, y, out + at);
    } else {
      for (uint32_t e = at; e < n; ++e) {  // the tail of a single row
        T tail[inputs];
#pragma unroll
        for (int i = 0; i < inputs; ++i) tail[i] = in.input[i].data[e * walk.strides[i][0]];
        out[e] = apply(function, tail);
      }
    }
  }
}

// --- ragged
// ---------------------------------------------------------------------------------------

// 16 bytes of an input, as they come from memory: the aligned pieces that hold them.
struct Pieces {
  uint4 low, high;
  unsigned offset;  // of the first byte in `low`
};

// Whether both pieces lie within the input: nothing outside it is ever read.
template <typename T>
__device__ __forceinline__ bool has_pieces(const Input<T>& input, const T* from) {
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
__device__ __forceinline__ Vector<T> cut_vector(const Pieces& pieces) {
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
  return as_vector<T>({w[0], w[1], w[2], w[3]});
}

// Rows of any length that start anywhere. A vector of output elements that reaches over the end of
// a row, or whose pieces would reach over an input's ends, is made element by element.
template <typename T, int inputs, typename Function>
__global__ void ragged_kernel(Function function, Inputs<T, inputs> in, T* out, uint32_t n,
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
    from[i] = in.input[i].data + offsets[i] + (is_row ? column : 0);
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
    Vector<T> x[inputs];
#pragma unroll
    for (int i = 0; i < inputs; ++i)
      x[i] = walk.strides[i][0] == 0 ? as_vector<T>(repeat(elements[i])) : cut_vector<T>(pieces[i]);
    apply_and_store(function, x, out + first);
  } else {
#pragma unroll 1
    for (uint32_t at = first; at < min(first + size, n); ++at) {
      T elements[inputs];
#pragma unroll
      for (int i = 0; i < inputs; ++i) offsets[i] = 0;
      walk.add_offsets(at, 0, offsets);
#pragma unroll
      for (int i = 0; i < inputs; ++i) elements[i] = in.input[i].data[offsets[i]];
      out[at] = apply(function, elements);
    }
  }
}

// --- strided
// --------------------------------------------------------------------------------------

constexpr int strided_elements = 2;  // of each thread, a block's width apart

template <typename T, int inputs, typename Function>
__global__ void strided_kernel(Function function, Inputs<T, inputs> in, T* out, uint32_t n,
                               Walk<inputs> walk) {
  const uint32_t first = blockIdx.x * (threads_per_block * strided_elements) + threadIdx.x;
  T elements[strided_elements][inputs];
#pragma unroll
  for (int k = 0; k < strided_elements; ++k) {
    const uint32_t at = first + k * threads_per_block;
    if (at >= n) break;
    int64_t offsets[inputs] = {};
    walk.add_offsets(at, 0, offsets);
#pragma unroll
    for (int i = 0; i < inputs; ++i) elements[k][i] = in.input[i].data[offsets[i]];
  }
#pragma unroll
  for (int k = 0; k < strided_elements; ++k) {
    const uint32_t at = first + k * threads_per_block;
    if (at >= n) break;
    out[at] = apply(function, elements[k]);
  }
}

// --- which of them
// --------------------------------------------------------------------------------

// The bytes from an input's first to its last element, whatever the sign of its strides.
template <typename T>
Input<T> make_input(const void* data, const Layout& layout, int i) {
  int64_t first = 0, last = 0;
  for (int d = 0; d < layout.dims; ++d)
    (layout.strides[i][d] < 0 ? first : last) += (layout.sizes[d] - 1) * layout.strides[i][d];
  const T* elements = static_cast<const T*>(data);
  return {elements, reinterpret_cast<const char*>(elements + first),
          reinterpret_cast<const char*>(elements + last + 1)};
}

// Whether every input is contiguous or constant along the rows.
template <int inputs>
bool has_rows(const Layout& layout) {
  for (int i = 0; i < inputs; ++i) {
    if (layout.strides[i][0] != 0 && layout.strides[i][0] != 1) return false;
  }
  return true;
}

// Whether every row can be written, and where it is contiguous also read, in aligned vectors.
template <typename T, int inputs>
bool has_aligned_rows(const Operands& operands, const Layout& layout) {
  constexpr int size = Vector<T>::size;
  if (layout.dims > 1 && layout.sizes[0] % size != 0) return false;
  for (int i = 0; i < inputs; ++i) {
    if (layout.strides[i][0] == 0) continue;
    if (!is_aligned(operands.in[i])) return false;
    for (int d = 1; d < layout.dims; ++d) {
      if (layout.strides[i][d] % size != 0) return false;
    }
  }
  return true;
}

template <typename Op, typename T, typename Function>
cudaError_t run(const Function& function, const Operands& operands, const Layout& layout,
                Stream stream) {
  constexpr int inputs = inputs_of<Op>;
  constexpr int size = Vector<T>::size;
  T* out = static_cast<T*>(operands.out);
  Inputs<T, inputs> in;
  bool aligned = is_aligned(out);
  for (int i = 0; i < inputs; ++i) {
    in.input[i] = make_input<T>(operands.in[i], layout, i);
    aligned &= is_aligned(operands.in[i]);
  }
  if (layout.is_dense() && aligned) {
    return launch<dense_kernel<T, inputs, Function>>(grid_of(divide_up(layout.numel, size)), stream,
                                                     function, in, out, layout.numel);
  }
  if (layout.numel > max_walk) {  // in two parts, cut where the output stays aligned
    Operands parts[2] = {operands, operands};
    Layout layouts[2];
    layout.split(16, layouts[0], layouts[1]);
    const int64_t outer = layouts[0].sizes[layout.dims - 1];
    for (int i = 0; i < inputs; ++i) {
      parts[1].in[i] =
          static_cast<const T*>(operands.in[i]) + outer * layout.strides[i][layout.dims - 1];
    }
    parts[1].out = out + layouts[0].numel;
    const cudaError_t error = run<Op, T>(function, parts[0], layouts[0], stream);
    return error != cudaSuccess ? error : run<Op, T>(function, parts[1], layouts[1], stream);
  }
  const auto n = static_cast<uint32_t>(layout.numel);
  Walk<inputs> walk(layout);
  if (is_aligned(out) && has_rows<inputs>(layout)) {
    if (has_aligned_rows<T, inputs>(operands, layout)) {
      const bool folded = layout.dims == 1;  // into rows of a block's width
      const auto row_length =
          static_cast<uint32_t>(folded ? threads_per_block * size : layout.sizes[0]);
      const auto rows = static_cast<uint32_t>(folded ? divide_up(n, row_length) : layout.sizes[1]);
      if (folded) walk.fold(row_length, rows);
      const Divider row_vectors(row_length / size);
      const Divider row_groups(static_cast<uint32_t>(divide_up(rows, rows_per_thread<T>)));
      const int64_t outer = folded ? 1 : n / row_length / rows;
      const Grid grid = grid_of(outer * row_vectors.divisor * row_groups.divisor);
      return launch<rows_kernel<T, inputs, Function>>(grid, stream, function, in, out, n, walk,
                                                      row_vectors, row_groups);
    }
    if (layout.dims == 1 || layout.sizes[0] >= 4 * size) {
      return launch<ragged_kernel<T, inputs, Function>>(grid_of(divide_up(n, size)), stream,
                                                        function, in, out, n, walk);
    }
  }
  return launch<strided_kernel<T, inputs, Function>>(grid_of(divide_up(n, strided_elements)),
                                                     stream, function, in, out, n, walk);
}

// An op may bring its own kernel for dense tensors, `dense<T>(operands, n, stream)`; then it names
// an op of the same arithmetic whose kernels it has for the rest: `using OtherLayouts = ...`.
template <typename Op, typename = void>
constexpr bool has_own_dense = false;
template <typename Op>
constexpr bool has_own_dense<Op, std::void_t<typename Op::OtherLayouts>> = true;

template <typename Op>
cudaError_t elementwise_on_cuda(DType dtype, const Operands& operands, const Scalar* numbers,
                                const Layout& layout, Stream stream) {
  if constexpr (has_own_dense<Op>) {
    if (!layout.is_dense())
      return on_cuda(typename Op::OtherLayouts{}, dtype, operands, numbers, layout, stream);
  }
  return with_element_type<Op::dtypes.bits, cudaError_t>(dtype, [&](auto element) {
    using T = decltype(element);
    using C = Compute<T>;
    if constexpr (has_own_dense<Op>) {
      return Op::template dense<T>(operands, layout.numel, stream);
    } else {
      const auto function =
          make_function<Op, C>(numbers, [](const Scalar& number) { return number.as<C>(); });
      return run<Op, T>(function, operands, layout, stream);
    }
  });
}

}  // namespace cuda_ext
