// Binds rms_norm to torch: an op with an optional tensor, several results, one of another dtype,
// and a variant that writes into its argument.
#include "rms_norm.h"

#include <limits>

#include "opwright/torch/arguments.h"
#include "opwright/torch/boxing.h"
#include "opwright/torch/cuda_device.h"
#include "opwright/torch/parallel.h"
#include "opwright/torch/register.h"

namespace opwright {
namespace {

constexpr OpName name{"rms_norm"};
constexpr const char* schema = "rms_norm(Tensor x, Tensor? weight=None, float? eps=None) -> Tensor";
constexpr const char* forward_schema =
    "_rms_norm_forward(Tensor x, Tensor? weight, float? eps) -> (Tensor, Tensor)";
constexpr const char* backward_schema =
    "_rms_norm_backward(Tensor grad, Tensor x, Tensor? weight, Tensor rstd, bool needs_x, "
    "bool needs_weight) -> (Tensor, Tensor)";
constexpr const char* out_schema =
    "rms_norm_out(Tensor x, Tensor? weight=None, float? eps=None, *, Tensor(a!) out) -> ()";

using MaybeTensor = std::optional<Tensor>;
using MaybeNumber = std::optional<double>;

// --- arguments
// ------------------------------------------------------------------------------------

int64_t row_size(const Tensor& x) {
  return x.sizes[x.dims - 1];
}

DType check(const Tensor& x, const MaybeTensor& weight, const Tensor* third,
            const char* third_name) {
  Argument arguments[3] = {{"x", &x}};
  int count = 1;
  if (weight) arguments[count++] = {"weight", &*weight};
  if (third) arguments[count++] = {third_name, third};
  const DType dtype = checked_dtype(name, arguments, count, rms_norm_dtypes);
  if (x.dims == 0) fail(name, ": x must have at least one dimension");
  if (x.dims > max_dims)
    fail(name, ": tensors of more than ", std::to_string(max_dims),
         " dimensions are not supported, got ", std::to_string(x.dims));
  if (weight && (weight->dims != 1 || weight->sizes[0] != row_size(x))) {
    fail(name, ": weight must have the one dimension that x ends in, [",
         std::to_string(row_size(x)), "]");
  }
  if (third && (third->dims != x.dims || !std::equal(x.sizes, x.sizes + x.dims, third->sizes)))
    fail(name, ": ", third_name, " must have the shape of x");
  return dtype;
}

// The rows of tensors of one shape.
Layout rows_of(std::initializer_list<const Tensor*> tensors) {
  View views[max_inputs];
  int count = 0;
  for (const Tensor* tensor : tensors)
    views[count++] = {tensor->sizes, tensor->strides, static_cast<int>(tensor->dims) - 1};
  const Layout rows = contiguous_layout(views, count);
  if (rows.numel > std::numeric_limits<int32_t>::max() ||
      row_size(**tensors.begin()) > std::numeric_limits<int32_t>::max())
    fail(name, ": more than 2^31 - 1 rows, or elements in a row, are not supported");
  return rows;
}

bool is_contiguous(const Tensor& tensor) {
  int64_t expected = 1;
  for (int64_t d = tensor.dims - 1; d >= 0; --d) {
    if (tensor.sizes[d] != 1 && tensor.strides[d] != expected && tensor.numel() > 0) return false;
    expected *= tensor.sizes[d];
  }
  return true;
}

int64_t last_stride(const Tensor& tensor) {
  return tensor.strides[tensor.dims - 1];
}

// torch's own default: the smallest step at 1 of the type that is computed in.
double epsilon(const MaybeNumber& eps, DType dtype) {
  if (eps) return *eps;
  return dtype == DType::float64 ? std::numeric_limits<double>::epsilon()
                                 : std::numeric_limits<float>::epsilon();
}

DType number_dtype(DType dtype) {
  return dtype == DType::float64 ? DType::float64 : DType::float32;
}

NewTensor new_contiguous(const Tensor& like, int32_t dtype, int64_t dims, const int64_t* sizes) {
  int64_t strides[max_dims];
  int64_t stride = 1;
  for (int64_t d = dims - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  return {name, like, dtype, dims, sizes, strides};
}
NewTensor new_contiguous(const Tensor& like, DType dtype, int64_t dims, const int64_t* sizes) {
  return new_contiguous(like, torch_dtype(dtype), dims, sizes);
}

template <typename AnyDType>
NewTensor new_like(const Tensor& x, AnyDType dtype) {
  return new_contiguous(x, dtype, x.dims, x.sizes);
}

NewTensor new_rows(const Tensor& like, DType dtype, int64_t rows, int64_t size) {
  const int64_t sizes[] = {rows, size};
  return new_contiguous(like, dtype, 2, sizes);
}

// What an op returns for a gradient that nobody needs.
NewTensor nothing(const Tensor& like, DType dtype) {
  const int64_t sizes[] = {0};
  return new_contiguous(like, dtype, 1, sizes);
}

RmsNorm make_problem(const Tensor& x, const MaybeTensor& weight, const MaybeNumber& eps,
                     DType dtype, void* out, void* rstd) {
  return {dtype,
          row_size(x),
          rows_of({&x}),
          x.data(),
          last_stride(x),
          weight ? weight->data() : nullptr,
          weight ? last_stride(*weight) : 0,
          epsilon(eps, dtype),
          out,
          rstd};
}

// --- devices: each has run(problem, like) for both directions
// -------------------------------------

struct OnCpu {
  explicit OnCpu(const Tensor&) {}

  void run(const RmsNorm& problem) const {
    parallel(problem.rows.numel, problem.size,
             [&](int64_t begin, int64_t end) { cpu::rms_norm(problem, begin, end); });
  }
  int64_t partial_sums(const RmsNormBackward&) const { return cpu::partial_sums; }
  void run(const RmsNormBackward& problem) const {
    const int64_t part_elements = problem.rows.numel * problem.size / cpu::partial_sums + 1;
    parallel(cpu::partial_sums, part_elements, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) cpu::rms_norm_backward(problem, part);
    });
    if (!problem.grad_weight) return;
    parallel(problem.size, cpu::partial_sums,
             [&](int64_t begin, int64_t end) { cpu::sum_partials(problem, begin, end); });
  }
};

#if defined(OPWRIGHT_WITH_CUDA)
struct OnCuda {
  explicit OnCuda(const Tensor& like) : device(like), stream(current_stream(name, like)) {}

  void run(const RmsNorm& problem) const { check_launch(name, rms_norm(problem, stream)); }
  int64_t partial_sums(const RmsNormBackward& problem) const {
    return opwright::partial_sums(problem, stream);
  }
  void run(const RmsNormBackward& problem) const {
    check_launch(name, rms_norm_backward(problem, stream));
  }

  OnDeviceOf device;
  Stream stream;
};
#else
struct OnCuda : OnCpu {
  explicit OnCuda(const Tensor& like) : OnCpu(like) { fail_without_cuda(name); }
};
#endif

// --- ops
// ------------------------------------------------------------------------------------------

template <typename Device>
NewTensor forward(const Tensor& x, const MaybeTensor& weight, MaybeNumber eps) {
  const DType dtype = check(x, weight, nullptr, nullptr);
  const Device device(x);
  NewTensor out = new_like(x, dtype);
  if (x.numel() > 0) device.run(make_problem(x, weight, eps, dtype, out.data(), nullptr));
  return out;
}

template <typename Device>
std::tuple<NewTensor, NewTensor> forward_with_rstd(const Tensor& x, const MaybeTensor& weight,
                                                   MaybeNumber eps) {
  const DType dtype = check(x, weight, nullptr, nullptr);
  const Device device(x);
  NewTensor out = new_like(x, dtype);
  int64_t sizes[max_dims];
  std::copy(x.sizes, x.sizes + x.dims, sizes);
  sizes[x.dims - 1] = 1;
  NewTensor rstd = new_contiguous(x, number_dtype(dtype), x.dims, sizes);
  if (x.numel() > 0) device.run(make_problem(x, weight, eps, dtype, out.data(), rstd.data()));
  return {std::move(out), std::move(rstd)};
}

// `out` may be x itself: a row is read before it is written.
template <typename Device>
void forward_out(const Tensor& x, const MaybeTensor& weight, MaybeNumber eps, const Tensor& out) {
  const DType dtype = check(x, weight, &out, "out");
  if (!is_contiguous(out)) fail(name, ": out must be contiguous");
  const Device device(x);
  if (x.numel() == 0) return;
  void* data = out.mutable_data();
  const RmsNorm problem = make_problem(x, weight, eps, dtype, data, nullptr);
  const auto overlaps = [&](const Tensor& tensor) {
    const auto bytes = [&](const Tensor& of, const void* from) {
      int64_t last = 1;
      for (int64_t d = 0; d < of.dims; ++d) last += (of.sizes[d] - 1) * of.strides[d];
      const auto* begin = static_cast<const char*>(from);
      return std::pair{begin, begin + last * element_sizes[static_cast<int>(dtype)]};
    };
    const auto [begin, end] = bytes(tensor, tensor.data());
    const auto [out_begin, out_end] = bytes(out, data);
    return begin < out_end && out_begin < end;
  };
  const bool in_place = problem.x == data && is_contiguous(x);
  if ((overlaps(x) && !in_place) || (weight && overlaps(*weight)))
    fail(name, ": out overlaps x or weight without being x; give it memory of its own");
  device.run(problem);
}

// A contiguous copy of a tensor of any layout.
Tensor copied(const Tensor& from) {
  NewTensor copy = new_like(from, from.dtype);
  TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(copy.handle(), from.handle(), /*non_blocking=*/0));
  return Tensor(copy.release());
}

// The same for views that torch negates lazily, such as z.conj().imag. Its own fallback for them
// expects an op to return what it writes into, and stops the process otherwise.
void forward_out_of_negative_views(const Tensor& x, const MaybeTensor& weight, MaybeNumber eps,
                                   const Tensor& out) {
  const Tensor own_x = copied(x), own_out = copied(out);
  MaybeTensor own_weight;
  if (weight) own_weight.emplace(copied(*weight));
  const bool on_cpu = x.device_type == aoti_torch_device_type_cpu();
  (on_cpu ? forward_out<OnCpu> : forward_out<OnCuda>)(own_x, own_weight, eps, own_out);
  TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(out.handle(), own_out.handle(), /*non_blocking=*/0));
}

template <typename Device>
std::tuple<NewTensor, NewTensor> backward(const Tensor& grad, const Tensor& x,
                                          const MaybeTensor& weight, const Tensor& rstd,
                                          bool needs_x, bool needs_weight) {
  const DType dtype = check(x, weight, &grad, "grad");
  const DType numbers = number_dtype(dtype);
  const Device device(x);
  const Layout rows = rows_of({&grad, &x});
  if (rstd.dtype != torch_dtype(numbers) || rstd.numel() != rows.numel || !is_contiguous(rstd) ||
      device_name(rstd) != device_name(x))
    fail(name, ": rstd must hold one ", dtype_names[static_cast<int>(numbers)],
         " for each row of x, on its device and without gaps");
  needs_weight = needs_weight && weight;
  NewTensor grad_x = needs_x ? new_like(x, dtype) : nothing(x, dtype);
  NewTensor grad_weight =
      needs_weight ? new_contiguous(x, dtype, 1, weight->sizes) : nothing(x, dtype);
  if (row_size(x) == 0) return {std::move(grad_x), std::move(grad_weight)};
  RmsNormBackward problem{dtype,
                          row_size(x),
                          rows,
                          grad.data(),
                          x.data(),
                          last_stride(grad),
                          last_stride(x),
                          weight ? weight->data() : nullptr,
                          weight ? last_stride(*weight) : 0,
                          rstd.data(),
                          needs_x ? grad_x.data() : nullptr,
                          needs_weight ? grad_weight.data() : nullptr,
                          nullptr};
  const NewTensor partial = needs_weight
                                ? new_rows(x, numbers, device.partial_sums(problem), problem.size)
                                : nothing(x, numbers);
  problem.partial = partial.data();
  if (needs_x || needs_weight) device.run(problem);
  return {std::move(grad_x), std::move(grad_weight)};
}

// --- registration
// ---------------------------------------------------------------------------------

void define_all(Library& library) {
  define(library, schema);
  describe(name, rms_norm_dtypes);
  library.def(forward_schema);
  library.def(backward_schema);
  library.def(out_schema);
}

template <typename Device>
void implement_on(Library& library) {
  implement(library, schema, boxed<&forward<Device>>);
  library.impl(full_name(forward_schema).c_str(), boxed<&forward_with_rstd<Device>>);
  library.impl(full_name(backward_schema).c_str(), boxed<&backward<Device>>);
  library.impl(full_name(out_schema).c_str(), boxed<&forward_out<Device>>);
}

void implement_on_negative_views(Library& library) {
  library.impl(full_name(out_schema).c_str(), boxed<&forward_out_of_negative_views>);
}

NewTensor refuse(const OwnedHandle&, const std::optional<OwnedHandle>&, MaybeNumber) {
  refuse_layout(name);
}
void refuse_all(Library& library) {
  implement(library, schema, boxed<&refuse>);
}

}  // namespace
}  // namespace opwright

OPWRIGHT_REGISTER(opwright::define_all, opwright::implement_on<opwright::OnCpu>,
                  opwright::implement_on<opwright::OnCuda>, opwright::refuse_all)
OPWRIGHT_KEY(Negative, opwright::implement_on_negative_views)
