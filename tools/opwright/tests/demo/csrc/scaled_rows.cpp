// scaled_rows: rows times a weight, with a second result in float64: several inputs, two results,
// and a number of each kind.
#include "opwright/kernel.h"

void scaled_rows(const float* x, const float* weight, float* out, double* sums, int64_t rows,
                 int64_t columns, int64_t shift, double scale, bool negate) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t at = row * columns + column;
      out[at] = static_cast<float>((x[at] * weight[column] * scale + shift) * (negate ? -1 : 1));
      sums[at] = out[at];
    }
  }
}

OPWRIGHT_KERNEL(
    scaled_rows,
    "scaled_rows(Tensor x, Tensor weight, int shift, float scale, bool negate) -> (Tensor, Tensor)")

// column_sums: a result whose shape differs from the first tensor's.
opwright::Shape one_row(const opwright::Sizes* tensors) {
  return {1, {tensors[0][-1]}};
}
void column_sums(const float* x, float* out, int64_t rows, int64_t columns) {
  for (int64_t column = 0; column < columns; ++column) {
    out[column] = 0;
    for (int64_t row = 0; row < rows; ++row) out[column] += x[row * columns + column];
  }
}

OPWRIGHT_KERNEL(column_sums, "column_sums(Tensor x) -> Tensor", one_row)
