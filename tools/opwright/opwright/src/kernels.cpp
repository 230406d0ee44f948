// Binds every launch function that OPWRIGHT_KERNEL added to the list of kernels: see kernel.h.
#include "opwright/kernel.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "opwright/torch/arguments.h"
#include "opwright/torch/boxing.h"
#include "opwright/torch/cuda_device.h"
#include "opwright/torch/register.h"

namespace opwright {
namespace {

struct KernelOp {
  const char* schema;
  Schema read;
  std::vector<const Kernel*> kernels;  // one per device and dtype
};

// The ops sorted by name, so that the order is the same on every machine. Not inlined, or each of
// the 384 functions below would contain a copy.
__attribute__((noinline)) const std::vector<KernelOp>& kernel_ops() {
  static const std::vector<KernelOp> ops = [] {
    std::map<std::string, KernelOp> found;
    for (const Kernel* kernel = first_kernel; kernel; kernel = kernel->next) {
      KernelOp& op = found[full_name(kernel->schema)];
      if (op.schema && std::string(op.schema) != kernel->schema) {
        complain({op.schema}, std::string("one op has two schemas: ") + op.schema + " and " +
                                  kernel->schema + "; give its kernels the same");
        continue;
      }
      for (const Kernel* other : op.kernels) {
        if (other->on_cuda == kernel->on_cuda &&
            std::equal(std::begin(other->in), std::end(other->in), std::begin(kernel->in)))
          complain({kernel->schema}, std::string("has two kernels for ") +
                                         (kernel->on_cuda ? "CUDA" : "the CPU") +
                                         " and the same dtypes; remove one OPWRIGHT_KERNEL");
      }
      op.schema = kernel->schema;
      op.read = read_schema(kernel->schema);
      op.kernels.push_back(kernel);
    }
    std::vector<KernelOp> sorted;
    for (auto& [name, op] : found) sorted.push_back(std::move(op));
    return sorted;
  }();
  return ops;
}

// The arguments of a call; every handle on the stack is owned before anything can throw.
struct Taken {
  std::vector<Tensor> tensors;
  KernelCall call{};

  Taken(const KernelOp& op, StableIValue* stack) {
    int integers = 0, reals = 0, booleans = 0;
    tensors.reserve(op.read.count);
    for (int i = 0; i < op.read.count; ++i) {
      switch (op.read.kinds[i]) {
        case Kind::tensor:
          tensors.push_back(FromStack<Tensor>::take(stack[i]));
          break;
        case Kind::integer:
          call.integers[integers++] = torch::stable::detail::to<int64_t>(stack[i]);
          break;
        case Kind::real:
          call.reals[reals++] = torch::stable::detail::to<double>(stack[i]);
          break;
        case Kind::boolean:
          call.booleans[booleans++] = torch::stable::detail::to<bool>(stack[i]);
          break;
      }
    }
  }
};

std::vector<Argument> tensor_arguments(const KernelOp& op, const Taken& taken) {
  std::vector<Argument> arguments;
  for (int i = 0; i < op.read.count; ++i) {
    if (op.read.kinds[i] == Kind::tensor)
      arguments.push_back({argument_name(op.schema, i), &taken.tensors[arguments.size()]});
  }
  return arguments;
}

void check_devices(OpName op, const std::vector<Argument>& arguments) {
  const Tensor& first = *arguments[0].tensor;
  for (const Argument& other : arguments) {
    if (other.tensor->device_type != first.device_type ||
        other.tensor->device_index != first.device_index)
      fail(op, ": ", arguments[0].name, " is on ", device_name(first), " and ", other.name,
           " is on ", device_name(*other.tensor), "; move one of them with .to()");
  }
}

// The kernel for the tensors' dtypes.
const Kernel& choose(const KernelOp& op, const std::vector<Argument>& arguments, bool on_cuda) {
  const OpName name{op.schema};
  std::string served;
  bool any = false;
  for (const Kernel* kernel : op.kernels) {
    if (kernel->on_cuda != on_cuda) continue;
    any = true;
    bool fits = true;
    std::string dtypes;
    for (size_t i = 0; i < arguments.size(); ++i) {
      fits &= arguments[i].tensor->dtype == torch_dtype(kernel->in[i]);
      dtypes += (i ? ", " : "") + std::string(dtype_names[static_cast<int>(kernel->in[i])]);
    }
    if (fits) return *kernel;
    served += (served.empty() ? "(" : " or (") + dtypes + ")";
  }
#if !defined(OPWRIGHT_WITH_CUDA)
  if (on_cuda) fail_without_cuda(name);
#endif
  if (!any && on_cuda) fail(name, ": has a kernel for the CPU alone; move the tensors with .cpu()");
  if (!any) fail(name, ": has a kernel for CUDA alone; move the tensors with .cuda()");
  std::string given;
  for (const Argument& argument : arguments)
    given += (given.empty() ? "" : ", ") + dtype_name(argument.tensor->dtype);
  fail(name, ": is called with (", given, "), and there are kernels for ", served,
       "; convert the tensors with .to()");
}

void run(int number, StableIValue* stack, bool on_cuda) {
  const KernelOp& op = kernel_ops()[number];
  const OpName name{op.schema};
  Taken taken(op, stack);
  const std::vector<Argument> arguments = tensor_arguments(op, taken);
  check_devices(name, arguments);
  const Kernel& kernel = choose(op, arguments, on_cuda);
  for (const Tensor& tensor : taken.tensors)
    if (tensor.dims > max_dims)
      fail(name, ": tensors of more than 25 dimensions are not supported");
#if defined(OPWRIGHT_WITH_CUDA)
  std::optional<OnDeviceOf> device;
  if (on_cuda) {
    device.emplace(taken.tensors[0]);
    const Stream stream = current_stream(name, taken.tensors[0]);
    taken.call.stream = stream.handle;
    taken.call.device = stream.device;
  }
#endif
  for (size_t i = 0; i < taken.tensors.size(); ++i) {
    Tensor& tensor = taken.tensors[i];
    if (!is_contiguous(tensor)) tensor = copied(name, tensor, tensor.dtype);
    taken.call.in[i] = tensor.data();
    taken.call.sizes[i] = {tensor.sizes, static_cast<int>(tensor.dims)};
  }
  const Tensor& first = taken.tensors[0];
  taken.call.elements = first.numel();
  taken.call.columns = first.dims ? first.sizes[first.dims - 1] : 1;
  taken.call.rows = taken.call.columns ? taken.call.elements / taken.call.columns : 0;
  Shape shape{static_cast<int>(first.dims), {}};
  std::copy(first.sizes, first.sizes + first.dims, shape.sizes);
  if (kernel.shape) shape = kernel.shape(taken.call.sizes);
  std::vector<NewTensor> results;
  for (int i = 0; i < op.read.results; ++i) {
    results.push_back(
        new_contiguous(name, first, torch_dtype(kernel.out[i]), shape.dims, shape.sizes));
    taken.call.out[i] = results.back().data();
  }
  int64_t elements = 1;
  for (int d = 0; d < shape.dims; ++d) elements *= shape.sizes[d];
  if (elements > 0) {
    [[maybe_unused]] const int error = kernel.run(taken.call);
#if defined(OPWRIGHT_WITH_CUDA)
    check_launch(name, static_cast<cudaError_t>(error));
    if (on_cuda) check_launch(name, cudaGetLastError());
#endif
  }
  for (NewTensor& result : results) *stack++ = torch::stable::detail::from(result.release());
}

__attribute__((noinline)) void refuse(int number, StableIValue* stack) {
  const KernelOp& op = kernel_ops()[number];
  for (int i = 0; i < op.read.count; ++i)
    if (op.read.kinds[i] == Kind::tensor) FromStack<OwnedHandle>::take(stack[i]);
  refuse_layout({op.schema});
}

// torch calls a plain function, so each op has its own, selected by its number.
constexpr int max_kernel_ops = 128;

template <int number, bool on_cuda>
void run_number(StableIValue* stack, uint64_t, uint64_t) {
  run(number, stack, on_cuda);
}
template <int number>
void refuse_number(StableIValue* stack, uint64_t, uint64_t) {
  refuse(number, stack);
}

using Functions = std::array<opwright::BoxedKernel*, max_kernel_ops>;
template <bool on_cuda, int... number>
constexpr Functions run_functions(std::integer_sequence<int, number...>) {
  return {&run_number<number, on_cuda>...};
}
template <int... number>
constexpr Functions refuse_functions(std::integer_sequence<int, number...>) {
  return {&refuse_number<number>...};
}
constexpr std::make_integer_sequence<int, max_kernel_ops> numbers{};

void implement_with(Library& library, const Functions& functions) {
  for (size_t i = 0; i < kernel_ops().size(); ++i)
    implement(library, kernel_ops()[i].schema, functions[i]);
}

void define_all(Library& library) {
  if (kernel_ops().size() > max_kernel_ops) fail("an extension has at most 128 kernels of its own");
  for (const KernelOp& op : kernel_ops()) {
    define(library, op.schema);
    DTypes dtypes;
    for (const Kernel* kernel : op.kernels) dtypes = dtypes | dtypes_of(kernel->in[0]);
    describe({op.schema}, dtypes);
  }
}
void all_on_cpu(Library& library) {
  implement_with(library, run_functions<false>(numbers));
}
void all_on_cuda(Library& library) {
  implement_with(library, run_functions<true>(numbers));
}
void refuse_all(Library& library) {
  implement_with(library, refuse_functions(numbers));
}

}  // namespace
}  // namespace opwright

OPWRIGHT_REGISTER(opwright::define_all, opwright::all_on_cpu, opwright::all_on_cuda,
                  opwright::refuse_all)
