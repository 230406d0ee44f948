// rms_norm on the CPU.
#include "opwright/rows_cpu.h"
#include "rms_norm.h"

namespace opwright::cpu {

OPWRIGHT_EVERY_CPU void rms_norm(const RowProblem& problem, int64_t begin, int64_t end) {
  with_row_types<rms_norm_dtypes.bits, void>(
      problem, [&](auto element, auto weight) __attribute__((always_inline)) {
        using T = decltype(element);
        const RmsNorm<Compute<T>> function(problem);
        for (int64_t row = begin; row < end; ++row)
          compute_row<T, decltype(weight)>(function, problem, row, nullptr);
      });
}

OPWRIGHT_EVERY_CPU void rms_norm_backward(const RowProblem& problem, int64_t part) {
  with_row_types<rms_norm_dtypes.bits, void>(
      problem, [&](auto element, auto weight) __attribute__((always_inline)) {
        using T = decltype(element);
        const RmsNormBackward<Compute<T>> function(problem);
        compute_part<T, decltype(weight)>(function, problem, part);
      });
}

OPWRIGHT_EVERY_CPU void rms_norm_sum_parts(const RowProblem& problem, int64_t begin, int64_t end) {
  with_row_types<rms_norm_dtypes.bits, void>(problem,
                                             [&](auto, auto weight) __attribute__((always_inline)) {
                                               sum_parts<decltype(weight)>(problem, begin, end);
                                             });
}

}  // namespace opwright::cpu
