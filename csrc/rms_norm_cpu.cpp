// rms_norm on the CPU: plain loops that compilers vectorise where rows are contiguous.
#include <algorithm>
#include <cmath>

#include "opwright/every_cpu.h"
#include "opwright/float16.h"
#include "rms_norm.h"

namespace opwright::cpu {
namespace {

// Where a row of input `i` starts, in elements.
OPWRIGHT_INLINE int64_t row_offset(const Layout& rows, int i, int64_t row) {
  int64_t offset = 0;
  for (int d = 0; d < rows.dims; ++d) {
    offset += row % rows.sizes[d] * rows.strides[i][d];
    row /= rows.sizes[d];
  }
  return offset;
}

// The sum of `term(i)` over a row: blocks in eight interleaved parts, which vectorise, and pairs of
// equally long sums, so that rounding errors grow with the logarithm of the length.
template <typename Number, typename Term>
OPWRIGHT_INLINE Number sum_row(int64_t size, Term&& term) {
  constexpr int64_t block = 512;
  Number pending[64];  // the sum of 2^level blocks, where the number of blocks so far has that bit
  int64_t blocks = 0;
  for (int64_t begin = 0; begin < size; begin += block, ++blocks) {
    const int64_t end = std::min(begin + block, size);
    Number parts[8] = {};
    int64_t i = begin;
    for (; i + 8 <= end; i += 8) {
      for (int p = 0; p < 8; ++p) parts[p] += term(i + p);
    }
    for (; i < end; ++i) parts[0] += term(i);
    Number sum = ((parts[0] + parts[4]) + (parts[1] + parts[5])) +
                 ((parts[2] + parts[6]) + (parts[3] + parts[7]));
    int level = 0;
    for (; blocks >> level & 1; ++level) sum += pending[level];
    pending[level] = sum;
  }
  Number sum = 0;
  for (int level = 0; blocks >> level; ++level) {
    if (blocks >> level & 1) sum += pending[level];
  }
  return sum;
}

template <typename T>
OPWRIGHT_INLINE void forward_row(const RmsNorm& problem, int64_t row) {
  using Number = Compute<T>;
  const T* x = static_cast<const T*>(problem.x) + row_offset(problem.rows, 0, row);
  const T* weight = static_cast<const T*>(problem.weight);
  T* out = static_cast<T*>(problem.out) + row * problem.size;
  const int64_t size = problem.size, step = problem.x_stride;
  const auto at = [=](int64_t i)
                      __attribute__((always_inline)) { return Number(load(x[i * step])); };
  const Number sum = sum_row<Number>(
      size, [=](int64_t i) __attribute__((always_inline)) { return at(i) * at(i); });
  const Number rstd = 1 / std::sqrt(sum / size + static_cast<Number>(problem.eps));
  if (problem.rstd) static_cast<Number*>(problem.rstd)[row] = rstd;
  for (int64_t i = 0; i < size; ++i) {
    const Number factor = weight ? load(weight[i * problem.weight_stride]) : Number(1);
    out[i] = Store<T>::from(at(i) * rstd * factor);
  }
}

template <typename T>
OPWRIGHT_INLINE void backward_row(const RmsNormBackward& problem, int64_t row,
                                  Compute<T>* grad_weight) {
  using Number = Compute<T>;
  const T* grad = static_cast<const T*>(problem.grad) + row_offset(problem.rows, 0, row);
  const T* x = static_cast<const T*>(problem.x) + row_offset(problem.rows, 1, row);
  const T* weight = static_cast<const T*>(problem.weight);
  const int64_t size = problem.size;
  const Number rstd = static_cast<const Number*>(problem.rstd)[row];
  const auto x_at = [=](int64_t i) __attribute__((always_inline)) {
    return Number(load(x[i * problem.x_stride]));
  };
  const auto grad_at = [=](int64_t i) __attribute__((always_inline)) {
    return Number(load(grad[i * problem.grad_stride]));
  };
  const auto scaled_at = [=](int64_t i) __attribute__((always_inline)) {
    return weight ? grad_at(i) * Number(load(weight[i * problem.weight_stride])) : grad_at(i);
  };
  if (problem.grad_x) {
    T* grad_x = static_cast<T*>(problem.grad_x) + row * size;
    const Number sum = sum_row<Number>(
        size, [=](int64_t i) __attribute__((always_inline)) { return scaled_at(i) * x_at(i); });
    const Number correction = sum / size * rstd * rstd * rstd;
    for (int64_t i = 0; i < size; ++i)
      grad_x[i] = Store<T>::from(scaled_at(i) * rstd - x_at(i) * correction);
  }
  if (grad_weight) {
    for (int64_t i = 0; i < size; ++i) grad_weight[i] += grad_at(i) * rstd * x_at(i);
  }
}

}  // namespace

OPWRIGHT_EVERY_CPU void rms_norm(const RmsNorm& problem, int64_t begin, int64_t end) {
  with_element_type<rms_norm_dtypes.bits, void>(problem.dtype,
                                                [&](auto element) __attribute__((always_inline)) {
                                                  for (int64_t row = begin; row < end; ++row)
                                                    forward_row<decltype(element)>(problem, row);
                                                });
}

OPWRIGHT_EVERY_CPU void rms_norm_backward(const RmsNormBackward& problem, int64_t part) {
  with_element_type<rms_norm_dtypes.bits, void>(
      problem.dtype, [&](auto element) __attribute__((always_inline)) {
        using Number = Compute<decltype(element)>;
        Number* grad_weight = nullptr;
        if (problem.grad_weight) {
          grad_weight = static_cast<Number*>(problem.partial) + part * problem.size;
          std::fill(grad_weight, grad_weight + problem.size, Number(0));
        }
        const int64_t rows = problem.rows.numel;
        const int64_t begin = rows * part / partial_sums, end = rows * (part + 1) / partial_sums;
        for (int64_t row = begin; row < end; ++row)
          backward_row<decltype(element)>(problem, row, grad_weight);
      });
}

OPWRIGHT_EVERY_CPU void sum_partials(const RmsNormBackward& problem, int64_t begin, int64_t end) {
  with_element_type<rms_norm_dtypes.bits, void>(
      problem.dtype, [&](auto element) __attribute__((always_inline)) {
        using T = decltype(element);
        using Number = Compute<T>;
        const auto* partial = static_cast<const Number*>(problem.partial);
        auto* grad_weight = static_cast<T*>(problem.grad_weight);
        for (int64_t i = begin; i < end; ++i) {
          Number sum = 0;
          for (int64_t part = 0; part < partial_sums; ++part)
            sum += partial[part * problem.size + i];
          grad_weight[i] = Store<T>::from(sum);
        }
      });
}

}  // namespace opwright::cpu
