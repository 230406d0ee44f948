// Binds every elementwise op of the extension to torch.
#include <array>

#include "build_info.h"
#include "elementwise_ops.h"
#include "opwright/elementwise.h"
#include "opwright/layout.h"
#include "opwright/torch/arguments.h"
#include "opwright/torch/boxing.h"
#include "opwright/torch/cuda_device.h"
#include "opwright/torch/parallel.h"
#include "opwright/torch/register.h"

namespace opwright {
namespace {

// Whether the strides equal those of a new tensor, even in dimensions of size 1.
bool has_plain_strides(const Tensor& tensor) {
  int64_t expected = 1;
  for (int64_t d = tensor.dims - 1; d >= 0; --d) {
    if (tensor.strides[d] != expected) return false;
    expected *= std::max<int64_t>(tensor.sizes[d], 1);
  }
  return tensor.dims <= max_dims;
}

bool is_laid_out_as(const Tensor& a, const Tensor& b) {
  return a.dims == b.dims && std::equal(a.sizes, a.sizes + a.dims, b.sizes) &&
         std::equal(a.strides, a.strides + a.dims, b.strides);
}

template <size_t inputs>
bool are_dense_alike(const std::array<Tensor, inputs>& tensors) {
  if (!has_plain_strides(tensors[0])) return false;
  // If a single input has no elements, torch orders the output's dimensions differently.
  if (inputs == 1 && tensors[0].numel() == 0) return false;
  for (size_t i = 1; i < inputs; ++i) {
    if (!is_laid_out_as(tensors[0], tensors[i])) return false;
  }
  return true;
}

template <size_t inputs>
void make_checked_layout(OpName op, const std::array<Tensor, inputs>& tensors, Layout& layout) {
  View views[inputs];
  for (size_t i = 0; i < inputs; ++i)
    views[i] = {tensors[i].sizes, tensors[i].strides, static_cast<int>(tensors[i].dims)};
  const std::string error = make_layout(views, inputs, layout);
  if (!error.empty()) fail(op, ": ", error);
}

template <typename Op, typename = void>
constexpr const char* refusal_of = nullptr;
template <typename Op>
constexpr const char* refusal_of<Op, std::void_t<decltype(Op::refusal)>> = Op::refusal;

template <typename Op>
constexpr auto all_inputs = std::make_index_sequence<inputs_of<Op>>{};

template <typename Op, size_t... I>
std::array<Tensor, sizeof...(I)> take_tensors(StableIValue* stack, std::index_sequence<I...>) {
  return {FromStack<Tensor>::take(stack[I])...};
}

#if defined(OPWRIGHT_WITH_CUDA)
// Copies tensors without dimensions from the CPU to the other tensors' GPU, because torch's own ops
// accept them.
template <size_t inputs>
void move_to_gpu(OpName op, std::array<Tensor, inputs>& tensors) {
  const int32_t cpu = aoti_torch_device_type_cpu();
  const auto on_gpu = std::find_if(tensors.begin(), tensors.end(),
                                   [&](const Tensor& tensor) { return tensor.device_type != cpu; });
  for (Tensor& tensor : tensors) {
    if (tensor.device_type != cpu || tensor.dims > 0) continue;
    NewTensor copy{op, *on_gpu, tensor.dtype, 0, tensor.sizes, tensor.strides};
    TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(copy.handle(), tensor.handle(), /*non_blocking=*/0));
    tensor = Tensor(copy.release());
  }
}
#endif

template <typename Op>
std::array<Scalar, numbers_of<Op> + 1> take_numbers(StableIValue* stack) {
  std::array<Scalar, numbers_of<Op> + 1> numbers;  // one more, so that the array is not empty
  for (int i = 0; i < numbers_of<Op>; ++i) {
    const StableIValue value = stack[inputs_of<Op> + i];
    numbers[i] = read_schema(Op::schema).kinds[inputs_of<Op> + i] == Kind::integer
                     ? Scalar::from(torch::stable::detail::to<int64_t>(value))
                     : Scalar::from(torch::stable::detail::to<double>(value));
  }
  return numbers;
}

template <typename Op, size_t inputs>
DType dtype_of(const std::array<Tensor, inputs>& tensors) {
  const auto checked = [&] {  // makes the names only when they may be needed
    Argument arguments[inputs];
    for (size_t i = 0; i < inputs; ++i)
      arguments[i] = {argument_name(Op::schema, static_cast<int>(i)), &tensors[i]};
    return checked_dtype({Op::schema}, arguments, inputs, Op::dtypes, refusal_of<Op>);
  };
  const int32_t number = tensors[0].dtype;
  for (size_t i = 1; i < inputs; ++i) {
    if (tensors[i].dtype != number || tensors[i].device_index != tensors[0].device_index ||
        tensors[i].device_type != tensors[0].device_type)
      return checked();
  }
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (Op::dtypes.has(dtype) && torch_dtype(dtype) == number) return dtype;
  }
  return checked();
}

// Allocates the results and has `run` fill them: run(dtype, operands, numbers, layout).
template <typename Op, typename Run>
void fill_results(StableIValue* stack, const std::array<Tensor, inputs_of<Op>>& tensors,
                  const std::array<Scalar, numbers_of<Op> + 1>& numbers, const Run& run) {
  constexpr int inputs = inputs_of<Op>;
  const OpName op{Op::schema};
  const DType dtype = dtype_of<Op>(tensors);
  const Tensor& first = tensors[0];
  Operands operands;
  for (int i = 0; i < inputs; ++i) operands.in[i] = tensors[i].data();
  const auto fill = [&](int64_t dims, const int64_t* sizes, const int64_t* strides,
                        const Layout& layout) {
    NewTensor out{op, first, first.dtype, dims, sizes, strides};
    operands.out[0] = out.data();
    if constexpr (outputs_of<Op> == 2) {
      NewTensor more{op, first, first.dtype, dims, sizes, strides};
      operands.out[1] = more.data();
      if (layout.numel > 0) run(dtype, operands, numbers.data(), layout);
      put_results(stack, std::tuple{std::move(out), std::move(more)});
    } else {
      if (layout.numel > 0) run(dtype, operands, numbers.data(), layout);
      put_results(stack, std::move(out));
    }
  };
  if (are_dense_alike(tensors)) {
    fill(first.dims, first.sizes, first.strides, dense_layout(inputs, first.numel()));
  } else {
    Layout layout;
    make_checked_layout(op, tensors, layout);
    fill(layout.out_dims, layout.out_sizes, layout.out_strides, layout);
  }
}

template <typename Op>
void run_on_cpu(StableIValue* stack, uint64_t, uint64_t) {
  const auto tensors = take_tensors<Op>(stack, all_inputs<Op>);
  fill_results<Op>(
      stack, tensors, take_numbers<Op>(stack),
      [](DType dtype, const Operands& operands, const Scalar* numbers, const Layout& layout) {
        parallel(layout.numel, 1, [&](int64_t begin, int64_t end) {
          on_cpu(Op{}, dtype, operands, numbers, layout, begin, end);
        });
      });
}

template <typename Op>
void run_on_cuda(StableIValue* stack, uint64_t, uint64_t) {
  [[maybe_unused]] auto tensors = take_tensors<Op>(stack, all_inputs<Op>);
  const OpName op{Op::schema};
#if defined(OPWRIGHT_WITH_CUDA)
  move_to_gpu(op, tensors);
  const OnDeviceOf device(tensors[0]);
  const Stream stream = current_stream(op, tensors[0]);
  fill_results<Op>(
      stack, tensors, take_numbers<Op>(stack),
      [&](DType dtype, const Operands& operands, const Scalar* numbers, const Layout& layout) {
        check_launch(op, on_cuda(Op{}, dtype, operands, numbers, layout, stream));
      });
#else
  fail_without_cuda(op);
#endif
}

template <typename Op, size_t... I>
void own_all(StableIValue* stack, std::index_sequence<I...>) {
  (FromStack<OwnedHandle>::take(stack[I]), ...);
}
template <typename Op>
void refuse(StableIValue* stack, uint64_t, uint64_t) {
  own_all<Op>(stack, all_inputs<Op>);
  refuse_layout({Op::schema});
}

// An op may name another schema, with a kernel in Python, to be defined before its own.
template <typename Op, typename = void>
constexpr const char* schema_before = nullptr;
template <typename Op>
constexpr const char* schema_before<Op, std::void_t<decltype(Op::schema_before)>> =
    Op::schema_before;

template <typename Op>
void define_op(Library& library) {
  if (schema_before<Op>) library.def(schema_before<Op>);
  define(library, Op::schema);
  describe({Op::schema}, Op::dtypes);
}
template <typename List>
struct Registered;
template <typename... Op>
struct Registered<OpList<Op...>> {
  static void define([[maybe_unused]] Library& library) { (define_op<Op>(library), ...); }
  static void on_cpu([[maybe_unused]] Library& library) {
    (implement(library, Op::schema, &run_on_cpu<Op>), ...);
  }
  static void on_cuda([[maybe_unused]] Library& library) {
    (implement(library, Op::schema, &run_on_cuda<Op>), ...);
  }
  static void refuse_all([[maybe_unused]] Library& library) {
    (implement(library, Op::schema, &refuse<Op>), ...);
  }
};
using Elementwise = Registered<ElementwiseOps>;

}  // namespace
}  // namespace opwright

OPWRIGHT_REGISTER(opwright::Elementwise::define, opwright::Elementwise::on_cpu,
                  opwright::Elementwise::on_cuda, opwright::Elementwise::refuse_all)
