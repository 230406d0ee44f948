// Row ops: how an extension's header declares one, and the kernels' interface. No torch here.
//
// A norm over rows is a struct with two function objects:
//
//   struct rms_norm {
//     static constexpr const char* number = "eps";  // the name of its number for users
//     static constexpr DTypes dtypes = floating_dtypes;
//     template <typename C>
//     static constexpr C default_number = ...;      // for elements that are computed as C
//     using Add = my_fast_add;                      // an elementwise op, for rows whose kernels
//                                                   // do not add a residual themselves
//     template <typename C>
//     struct Forward { ... };   // of x; its state is a C
//     template <typename C>
//     struct Backward { ... };  // of grad and x, given Forward's state; also sums over the rows
//   };
//   OPWRIGHT_ROWS(rms_norm)
//
// CMake compiles each header that has the macro with both engines, and src/rows.cpp binds the
// resulting ops to torch.
//
// A function object sums a term over each row of its inputs, turns the sum into the row's state,
// and computes each element of its outputs from that. It may also sum each column over the rows:
//
//   explicit Forward(const RowProblem&);
//   static constexpr int inputs = 1, outputs = 1;
//   static constexpr Added added = Added::nowhere;          // see Added below
//   using State = C;                                        // shared by the elements of a row
//   C term(const C* in, C weight) const;                    // summed over the row
//   State finish(C sum, C given) const;                     // `given` is the row's number, if any
//   void apply(const C* in, C weight, State, C* out) const; // one element of each output
//   C column(const C* in, C given) const;                   // summed over the rows, or nothing
//
// The engines handle rows of every length, alignment and stride: rows.cuh on CUDA, rows_cpu.h on
// the CPU. No sum uses atomics, so the same inputs give the same bits in every run.
#pragma once

#include "element.h"
#include "layout.h"

#if defined(OPWRIGHT_WITH_CUDA)
#include "stream.h"
#endif

namespace opwright {

constexpr int max_row_inputs = 3, max_row_outputs = 2;

// Where an additional tensor, such as a residual, is added: to the first input before anything
// else (the rounded sum is then a result too), or to the first output.
enum class Added { nowhere, to_input, to_output };

// The elements of a row are adjacent; rows may lie anywhere (`rows` walks them). Results are
// contiguous.
struct RowProblem {
  DType dtype;       // of inputs and outputs
  bool wide_weight;  // the weight is of the compute type, and T is narrower
  int64_t size;      // of a row
  Layout rows;
  const void* in[max_row_inputs] = {};
  const void* weight = nullptr;     // one element per column, 16-byte aligned; null: all ones
  const void* given = nullptr;      // one number per row; null: none
  void* out[max_row_outputs] = {};  // null if not needed
  void* row_out = nullptr;          // the state of each row; null if not needed
  void* column_out = nullptr;       // of the weight's type; null if not needed
  void* partial = nullptr;          // room for partial sums of the columns
  const void* added = nullptr;      // contiguous; null: nothing is added
  void* sum = nullptr;              // receives the first input plus `added`
  double weight_offset = 0;         // added to the weight, which must be of the compute type then
  double number = 0;                // the op's own, such as eps
};

// The kernels of an op on the CPU, where the caller's thread pool divides the work. Forward
// computes the rows [begin, end). Backward computes one of the `column_parts` parts of the rows;
// then the parts are summed for the columns [begin, end).
#define OPWRIGHT_FORWARD_ON_CPU(op) \
  void forward_on_cpu(op, const RowProblem& problem, int64_t begin, int64_t end)
#define OPWRIGHT_BACKWARD_ON_CPU(op) \
  void backward_on_cpu(op, const RowProblem& problem, int64_t part)
#define OPWRIGHT_SUM_ON_CPU(op) \
  void sum_on_cpu(op, const RowProblem& problem, int64_t begin, int64_t end)

// The kernels on CUDA, launched on `stream`. `adds_on_cuda` tells whether the kernel adds
// `problem.added`, which must be null otherwise. `partials_on_cuda` tells how many rows of `size`
// float32 (float64) values `problem.partial` must hold.
#define OPWRIGHT_FORWARD_ON_CUDA(op) \
  cudaError_t forward_on_cuda(op, const RowProblem& problem, Stream stream)
#define OPWRIGHT_BACKWARD_ON_CUDA(op) \
  cudaError_t backward_on_cuda(op, const RowProblem& problem, Stream stream)
#define OPWRIGHT_ADDS_ON_CUDA(op) bool adds_on_cuda(op, const RowProblem& problem, bool backward)
#define OPWRIGHT_PARTIALS_ON_CUDA(op) \
  int64_t partials_on_cuda(op, const RowProblem& problem, Stream stream)

// The names of the op and of its variant that adds a residual first.
template <typename Op>
constexpr const char* row_names[2] = {};

// Declares the op's kernels; the engines define what they compile.
#if !defined(OPWRIGHT_DEFINE_ROWS)
#define OPWRIGHT_DEFINE_ROWS(op)
#endif
#if defined(OPWRIGHT_WITH_CUDA)
#define OPWRIGHT_DECLARE_CUDA_ROWS(op) \
  OPWRIGHT_FORWARD_ON_CUDA(op);        \
  OPWRIGHT_BACKWARD_ON_CUDA(op);       \
  OPWRIGHT_ADDS_ON_CUDA(op);           \
  OPWRIGHT_PARTIALS_ON_CUDA(op);
#else
#define OPWRIGHT_DECLARE_CUDA_ROWS(op)
#endif
#define OPWRIGHT_ROWS(op)                                            \
  template <>                                                        \
  inline constexpr const char* row_names<op>[2] = {#op, "add_" #op}; \
  OPWRIGHT_FORWARD_ON_CPU(op);                                       \
  OPWRIGHT_BACKWARD_ON_CPU(op);                                      \
  OPWRIGHT_SUM_ON_CPU(op);                                           \
  OPWRIGHT_DECLARE_CUDA_ROWS(op)                                     \
  OPWRIGHT_DEFINE_ROWS(op)

namespace cpu {
// The CPU divides the rows into this many parts and sums the columns of each in float64: `partial`
// holds one float64 row per part.
constexpr int64_t column_parts = 64;
}  // namespace cpu

}  // namespace opwright
