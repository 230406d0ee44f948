// The CUDA engine for row ops: rows.h describes an op.
#pragma once

#define OPWRIGHT_DEFINE_ROWS(op)                  \
  OPWRIGHT_FORWARD_ON_CUDA(op) {                  \
    return run_forward<op>(problem, stream);      \
  }                                               \
  OPWRIGHT_BACKWARD_ON_CUDA(op) {                 \
    return run_backward<op>(problem, stream);     \
  }                                               \
  OPWRIGHT_ADDS_ON_CUDA(op) {                     \
    return adds_in_kernel<op>(problem, backward); \
  }                                               \
  OPWRIGHT_PARTIALS_ON_CUDA(op) {                 \
    return count_partials<op>(problem, stream);   \
  }
#include "row_columns.cuh"

namespace opwright {

// Chooses the kernel for a row's length and alignment. The shapes come from a sweep on an H200 that
// also timed other projects' kernels.
template <typename T, typename Function>
cudaError_t run_rows(const Function& function, const RowProblem& problem, Stream stream) {
  if (problem.rows.numel == 0) return cudaSuccess;
  const RowArguments<Function, T> arguments(function, problem);
  const auto run = [&](auto shape) { return run_shape<decltype(shape)>(arguments, stream); };
  const int bytes = access_bytes<T, Function>(problem);
  const bool adding = problem.added;
  constexpr int one = sizeof(T);
  const int64_t row_bytes = problem.size * one;
  if constexpr (one <= 4) {
    if (bytes == 16) {
      using Usual = RowShape<16, 512, Team::block, 2, 3, true>;
      const int64_t vectors = row_bytes / 16;
      if (vectors <= 64) return run(RowShape<16, 128, Team::part_of_warp, 2, 1, true>{});
      if (vectors <= 1024 && (adding || vectors <= 512 || fills<Usual>(vectors, 3 * 512)))
        return run(Usual{});
      if (!adding && vectors <= 2560) return run(RowShape<16, 512, Team::block, 5, 2>{});
      if constexpr (one == 4) {
        if (!adding && vectors <= 4608) return run(RowShape<16, 512, Team::block, 9, 2>{});
      }
      return run_long_rows<16>(arguments, stream);
    }
  }
  if constexpr (one == 2) {
    if (bytes == 8 && row_bytes > 512) {
      if (adding && row_bytes <= 8 * 2048) return run(RowShape<8, 512, Team::block, 4, 3, true>{});
      if (!adding && row_bytes <= 8 * 4096) return run(RowShape<8, 512, Team::block, 8, 2>{});
      return run_long_rows<8>(arguments, stream);
    }
  }
  if (problem.size <= 256) return run(RowShape < one, 128, Team::part_of_warp, 8, 1, one == 4 > {});
  if (problem.size > (one == 8 ? 4096 : 8192)) return run_long_rows<one>(arguments, stream);
  if constexpr (one == 8) {
    return run(RowShape<one, 512, Team::block, 8, 2>{});
  } else if constexpr (one == 4) {
    if (adding) return run(RowShape<one, 512, Team::block, 8, 2, true>{});
    if (problem.size <= 4096) return run(RowShape<one, 512, Team::block, 8, 4>{});
  } else {
    if (problem.size > 2400 && problem.size <= 4096)
      return run(RowShape<one, 256, Team::full_block, 16>{});
  }
  return run(RowShape<one, 512, Team::block, 16, 2>{});
}

// Whether the kernels for such rows add `problem.added`. Where each access moves one element, an
// added tensor is one access more for each, and a pass of its own is faster.
template <typename T, typename Function>
bool adds_in_kernel(const RowProblem& problem) {
  constexpr bool forward = Function::added == Added::to_input;
  const int bytes = access_bytes<T, Function>(problem);
  if (sizeof(T) == 4) return bytes == 16 || problem.size <= 4096;
  if (sizeof(T) == 8 || bytes < 8) return false;
  return bytes == 16 || (problem.size > 256 && (forward || problem.size <= 10240));
}

// Calls `use(T{})` with the type of the elements.
template <typename Op, typename Result, typename Use>
Result with_type(const RowProblem& problem, Use&& use) {
  return with_element_type<Op::dtypes.bits, Result>(problem.dtype, use);
}

template <typename Op>
cudaError_t run_forward(const RowProblem& problem, Stream stream) {
  return with_type<Op, cudaError_t>(problem, [&](auto element) {
    using T = decltype(element);
    return run_rows<T>(typename Op::template Forward<Compute<T>>(problem), problem, stream);
  });
}

template <typename Op>
cudaError_t run_backward(const RowProblem& problem, Stream stream) {
  return with_type<Op, cudaError_t>(problem, [&](auto element) {
    using T = decltype(element);
    return run_columns<T>(typename Op::template Backward<Compute<T>>(problem), problem, stream);
  });
}

template <typename Op>
bool adds_in_kernel(const RowProblem& problem, bool backward) {
  return with_type<Op, bool>(problem, [&](auto element) {
    using T = decltype(element);
    using C = Compute<T>;
    return backward ? adds_in_kernel<T, typename Op::template Backward<C>>(problem)
                    : adds_in_kernel<T, typename Op::template Forward<C>>(problem);
  });
}

template <typename Op>
int64_t count_partials(const RowProblem& problem, Stream stream) {
  return with_type<Op, int64_t>(problem, [&](auto element) {
    using T = decltype(element);
    using Function = typename Op::template Backward<Compute<T>>;
    return plan_columns<T, Function>(problem, stream).partials();
  });
}

}  // namespace opwright
