// Binds rms_norm and add_rms_norm to torch: ops with an optional tensor, several results, one of
// another dtype, and a variant that writes into its argument.
#include "rms_norm.h"

#include <limits>

#include "add.h"
#include "opwright/torch/arguments.h"
#include "opwright/torch/boxing.h"
#include "opwright/torch/cuda_device.h"
#include "opwright/torch/parallel.h"
#include "opwright/torch/register.h"

namespace opwright {
namespace {

constexpr OpName name{"rms_norm"};
constexpr const char* schema =
    "rms_norm(Tensor x, Tensor? weight=None, float? eps=None, float weight_offset=0.0) -> Tensor";
constexpr const char* forward_schema =
    "_rms_norm_forward(Tensor x, Tensor? weight, float? eps, float weight_offset=0.0) -> (Tensor, "
    "Tensor)";
constexpr const char* backward_schema =
    "_rms_norm_backward(Tensor grad, Tensor x, Tensor? weight, Tensor rstd, bool needs_x, "
    "bool needs_weight, float weight_offset=0.0, Tensor? added=None) -> (Tensor, Tensor)";
constexpr const char* out_schema =
    "rms_norm_out(Tensor x, Tensor? weight=None, float? eps=None, float weight_offset=0.0, *, "
    "Tensor(a!) out) -> ()";
constexpr OpName add_name{"add_rms_norm"};
constexpr const char* add_schema =
    "add_rms_norm(Tensor x, Tensor residual, Tensor? weight=None, float? eps=None, "
    "float weight_offset=0.0) -> (Tensor, Tensor)";
constexpr const char* add_forward_schema =
    "_add_rms_norm_forward(Tensor x, Tensor residual, Tensor? weight, float? eps, "
    "float weight_offset=0.0) -> (Tensor, Tensor, Tensor)";

using MaybeTensor = std::optional<Tensor>;
using MaybeNumber = std::optional<double>;

// --- arguments ----------------------------------------------------

int64_t row_size(const Tensor& x) {
  return x.sizes[x.dims - 1];
}

// The dtype of x, and of `third`. The weight may have another floating one.
DType check(OpName op, const Tensor& x, const MaybeTensor& weight, const Tensor* third,
            const char* third_name) {
  const Argument arguments[] = {{"x", &x}, {third ? third_name : "", third}};
  const DType dtype = checked_dtype(op, arguments, third ? 2 : 1, rms_norm_dtypes);
  if (x.dims == 0) fail(op, ": x must have at least one dimension");
  if (x.dims > max_dims)
    fail(op, ": tensors of more than ", std::to_string(max_dims),
         " dimensions are not supported, got ", std::to_string(x.dims));
  if (weight) {
    const Argument argument{"weight", &*weight};
    checked_dtype(op, &argument, 1, rms_norm_dtypes, nullptr);
    if (device_name(*weight) != device_name(x))
      fail(op, ": x is on ", device_name(x), " and weight is on ", device_name(*weight),
           "; move one of them with .to()");
    if (weight->dims != 1 || weight->sizes[0] != row_size(x))
      fail(op, ": weight must have the one dimension that x ends in, [",
           std::to_string(row_size(x)), "]");
  }
  if (third && (third->dims != x.dims || !std::equal(x.sizes, x.sizes + x.dims, third->sizes)))
    fail(op, ": ", third_name, " must have the shape of x");
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

int64_t element_size(const Tensor& tensor) {
  int d = 0;
  while (torch_dtype(static_cast<DType>(d)) != tensor.dtype) ++d;  // checked before
  return element_sizes[d];
}

bool is_aligned(const Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data()) % 16 == 0;
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

NewTensor new_like(const Tensor& x, int32_t dtype) {
  return new_contiguous(name, x, dtype, x.dims, x.sizes);
}

// What an op returns for a gradient that nobody needs.
NewTensor nothing(const Tensor& like, int32_t dtype) {
  const int64_t sizes[] = {0};
  return new_contiguous(name, like, dtype, 1, sizes);
}

void copy(AtenTensorHandle to, AtenTensorHandle from) {
  TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(to, from, /*non_blocking=*/0));
}

// The tensor, or a copy of it that `kept` keeps, where a row's elements do not lie side by side.
const Tensor& with_rows(const Tensor& tensor, MaybeTensor& kept) {
  if (tensor.strides[tensor.dims - 1] == 1 || row_size(tensor) <= 1) return tensor;
  return kept.emplace(copied(name, tensor, tensor.dtype));
}

// A tensor as kernels read one that is no input: contiguous, at an aligned address.
const void* plain_data(const Tensor& tensor, int32_t dtype, MaybeTensor& kept) {
  const bool is_plain = tensor.dtype == dtype && is_contiguous(tensor) && is_aligned(tensor);
  return is_plain ? tensor.data() : kept.emplace(copied(name, tensor, dtype)).data();
}

// The weight as kernels read it: of x's dtype, or else, or with an offset, of the one that is
// computed in.
class Weight {
 public:
  Weight(const MaybeTensor& weight, DType x_dtype, double with_offset) {
    if (!weight) return;  // and then an offset means nothing
    offset = with_offset;
    wide =
        (weight->dtype != torch_dtype(x_dtype) || offset != 0) && number_dtype(x_dtype) != x_dtype;
    dtype = torch_dtype(wide ? number_dtype(x_dtype) : x_dtype);
    data = plain_data(*weight, dtype, copy_);
  }

  bool wide = false;
  double offset = 0;
  int32_t dtype = 0;
  const void* data = nullptr;

 private:
  MaybeTensor copy_;
};

// --- devices ------------------------------------------------------

struct OnCpu {
  explicit OnCpu(const Tensor&) {}

  void forward(const RowProblem& problem) const {
    parallel(problem.rows.numel, problem.size,
             [&](int64_t begin, int64_t end) { cpu::rms_norm(problem, begin, end); });
  }
  bool adds(const RowProblem&, bool) const { return true; }
  void add(DType, const void*, const void*, void*, int64_t) const {}
  NewTensor new_partials(const Tensor& like, const RowProblem& problem, DType) const {
    const int64_t sizes[] = {cpu::column_parts, problem.size};
    return new_contiguous(name, like, torch_dtype(DType::float64), 2, sizes);
  }
  void backward(const RowProblem& problem) const {
    const int64_t part_elements = problem.rows.numel * problem.size / cpu::column_parts + 1;
    parallel(cpu::column_parts, part_elements, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) cpu::rms_norm_backward(problem, part);
    });
    if (!problem.column_out) return;
    parallel(problem.size, cpu::column_parts,
             [&](int64_t begin, int64_t end) { cpu::rms_norm_sum_parts(problem, begin, end); });
  }
};

#if defined(OPWRIGHT_WITH_CUDA)
struct OnCuda {
  explicit OnCuda(const Tensor& like) : device(like), stream(current_stream(name, like)) {}

  void forward(const RowProblem& problem) const { check_launch(name, rms_norm(problem, stream)); }
  bool adds(const RowProblem& problem, bool backward) const {
    return backward ? rms_norm_backward_adds(problem) : rms_norm_adds(problem);
  }
  // For the rows that have no kernel which adds.
  void add(DType dtype, const void* a, const void* b, void* sum, int64_t numel) const {
    check_launch(name, on_cuda(my_fast_add{}, dtype, {{a, b}, sum}, nullptr, dense_layout(2, numel),
                               stream));
  }
  NewTensor new_partials(const Tensor& like, const RowProblem& problem, DType numbers) const {
    const int64_t sizes[] = {rms_norm_partials(problem, stream), problem.size};
    return new_contiguous(name, like, torch_dtype(numbers), 2, sizes);
  }
  void backward(const RowProblem& problem) const {
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

// --- ops ----------------------------------------------------------

// What a call is told beside x.
struct Norm {
  const MaybeTensor& weight;
  MaybeNumber eps;
  double offset;
  const Tensor* residual = nullptr;  // of x's shape and dtype
  void *rstd = nullptr, *sum = nullptr;
};

template <typename Device>
void run_forward(const Tensor& x, const Norm& norm, DType dtype, void* out) {
  const Device device(x);
  if (x.numel() == 0) return;
  MaybeTensor kept, kept_residual;
  const Tensor& in = with_rows(x, kept);
  const Weight factors(norm.weight, dtype, norm.offset);
  RowProblem problem{dtype, factors.wide, row_size(x), rows_of({&in}), {in.data()}, factors.data};
  problem.out[0] = out;
  problem.row_out = norm.rstd;
  problem.number = epsilon(norm.eps, dtype);
  problem.weight_offset = factors.offset;
  if (norm.residual) problem.added = plain_data(*norm.residual, x.dtype, kept_residual);
  problem.sum = norm.sum;
  MaybeTensor kept_x;
  if (norm.residual && !device.adds(problem, /*backward=*/false)) {
    device.add(dtype, plain_data(x, x.dtype, kept_x), problem.added, norm.sum, x.numel());
    const int64_t rows[] = {x.numel() / row_size(x)}, strides[] = {row_size(x)};
    const View view{rows, strides, 1};
    problem.rows = contiguous_layout(&view, 1);
    problem.in[0] = norm.sum;
    problem.added = problem.sum = nullptr;
  }
  device.forward(problem);
}

NewTensor new_rstd(const Tensor& x, DType dtype) {
  int64_t sizes[max_dims];
  std::copy(x.sizes, x.sizes + x.dims, sizes);
  sizes[x.dims - 1] = 1;
  return new_contiguous(name, x, torch_dtype(number_dtype(dtype)), x.dims, sizes);
}

template <typename Device>
NewTensor forward(const Tensor& x, const MaybeTensor& weight, MaybeNumber eps, double offset) {
  const DType dtype = check(name, x, weight, nullptr, nullptr);
  NewTensor out = new_like(x, x.dtype);
  run_forward<Device>(x, {weight, eps, offset}, dtype, out.data());
  return out;
}

template <typename Device>
std::tuple<NewTensor, NewTensor> forward_with_rstd(const Tensor& x, const MaybeTensor& weight,
                                                   MaybeNumber eps, double offset) {
  const DType dtype = check(name, x, weight, nullptr, nullptr);
  NewTensor out = new_like(x, x.dtype), rstd = new_rstd(x, dtype);
  run_forward<Device>(x, {weight, eps, offset, nullptr, rstd.data()}, dtype, out.data());
  return {std::move(out), std::move(rstd)};
}

template <typename Device>
std::tuple<NewTensor, NewTensor> add_forward(const Tensor& x, const Tensor& residual,
                                             const MaybeTensor& weight, MaybeNumber eps,
                                             double offset) {
  const DType dtype = check(add_name, x, weight, &residual, "residual");
  NewTensor out = new_like(x, x.dtype), sum = new_like(x, x.dtype);
  run_forward<Device>(x, {weight, eps, offset, &residual, nullptr, sum.data()}, dtype, out.data());
  return {std::move(out), std::move(sum)};
}

template <typename Device>
std::tuple<NewTensor, NewTensor, NewTensor> add_forward_with_rstd(const Tensor& x,
                                                                  const Tensor& residual,
                                                                  const MaybeTensor& weight,
                                                                  MaybeNumber eps, double offset) {
  const DType dtype = check(add_name, x, weight, &residual, "residual");
  NewTensor out = new_like(x, x.dtype), sum = new_like(x, x.dtype), rstd = new_rstd(x, dtype);
  run_forward<Device>(x, {weight, eps, offset, &residual, rstd.data(), sum.data()}, dtype,
                      out.data());
  return {std::move(out), std::move(sum), std::move(rstd)};
}

// `out` may be x itself: each element is read before it is written, by the thread that writes it.
template <typename Device>
void forward_out(const Tensor& x, const MaybeTensor& weight, MaybeNumber eps, double offset,
                 const Tensor& out) {
  const DType dtype = check(name, x, weight, &out, "out");
  if (!is_contiguous(out)) fail(name, ": out must be contiguous");
  if (x.numel() == 0) return;
  void* data = out.mutable_data();
  const auto overlaps = [&](const Tensor& tensor) {
    const auto bytes = [](const Tensor& of, const void* from, int64_t element) {
      int64_t last = 1;
      for (int64_t d = 0; d < of.dims; ++d) last += (of.sizes[d] - 1) * of.strides[d];
      const auto* begin = static_cast<const char*>(from);
      return std::pair{begin, begin + last * element};
    };
    const auto [begin, end] = bytes(tensor, tensor.data(), element_size(tensor));
    const auto [out_begin, out_end] = bytes(out, data, element_size(out));
    return begin < out_end && out_begin < end;
  };
  const bool in_place = x.data() == data && is_contiguous(x);
  if ((overlaps(x) && !in_place) || (weight && overlaps(*weight)))
    fail(name, ": out overlaps x or weight without being x; give it memory of its own");
  run_forward<Device>(x, {weight, eps, offset}, dtype, data);
}

// The same for views that torch negates lazily, such as z.conj().imag. Its own fallback for them
// expects an op to return what it writes into, and stops the process otherwise.
void forward_out_of_negative_views(const Tensor& x, const MaybeTensor& weight, MaybeNumber eps,
                                   double offset, const Tensor& out) {
  const Tensor own_x = copied(name, x, x.dtype), own_out = copied(name, out, out.dtype);
  MaybeTensor own_weight;
  if (weight) own_weight.emplace(copied(name, *weight, weight->dtype));
  const bool on_cpu = x.device_type == aoti_torch_device_type_cpu();
  (on_cpu ? forward_out<OnCpu> : forward_out<OnCuda>)(own_x, own_weight, eps, offset, own_out);
  copy(out.handle(), own_out.handle());
}

template <typename Device>
std::tuple<NewTensor, NewTensor> backward(const Tensor& grad, const Tensor& x,
                                          const MaybeTensor& weight, const Tensor& rstd,
                                          bool needs_x, bool needs_weight, double offset,
                                          const MaybeTensor& added) {
  const DType dtype = check(name, x, weight, &grad, "grad");
  const DType numbers = number_dtype(dtype);
  const Device device(x);
  MaybeTensor kept_grad, kept_x;
  const Tensor &own_grad = with_rows(grad, kept_grad), &own_x = with_rows(x, kept_x);
  const Layout rows = rows_of({&own_grad, &own_x});
  if (rstd.dtype != torch_dtype(numbers) || rstd.numel() != rows.numel || !is_contiguous(rstd) ||
      device_name(rstd) != device_name(x))
    fail(name, ": rstd must hold one ", dtype_names[static_cast<int>(numbers)],
         " for each row of x, on its device and without gaps");
  if (added) check(name, x, weight, &*added, "added");
  needs_weight = needs_weight && weight;
  const Weight factors(weight, dtype, offset);
  NewTensor grad_x = needs_x ? new_like(x, x.dtype) : nothing(x, x.dtype);
  NewTensor grad_weight = needs_weight ? new_like(*weight, factors.dtype)
                                       : nothing(x, weight ? weight->dtype : x.dtype);
  if (row_size(x) > 0 && (needs_x || needs_weight)) {
    RowProblem problem{
        dtype,        factors.wide, row_size(x), rows, {own_grad.data(), own_x.data()},
        factors.data, rstd.data()};
    MaybeTensor kept_added;
    problem.weight_offset = factors.offset;
    if (needs_x) problem.out[0] = grad_x.data();
    const void* more = needs_x && added ? plain_data(*added, x.dtype, kept_added) : nullptr;
    problem.added = more;
    if (more && !device.adds(problem, /*backward=*/true)) problem.added = nullptr;
    if (needs_weight) problem.column_out = grad_weight.data();
    const NewTensor partial =
        needs_weight ? device.new_partials(x, problem, numbers) : nothing(x, x.dtype);
    problem.partial = partial.data();
    device.backward(problem);
    if (more && !problem.added) device.add(dtype, problem.out[0], more, problem.out[0], x.numel());
  }
  if (needs_weight && weight->dtype != factors.dtype) {
    NewTensor converted = new_like(*weight, weight->dtype);
    copy(converted.handle(), grad_weight.handle());
    grad_weight = std::move(converted);
  }
  return {std::move(grad_x), std::move(grad_weight)};
}

// --- registration -------------------------------------------------

void define_all(Library& library) {
  define(library, schema);
  describe(name, rms_norm_dtypes);
  define(library, add_schema);
  describe(add_name, rms_norm_dtypes);
  library.def(forward_schema);
  library.def(add_forward_schema);
  library.def(backward_schema);
  library.def(out_schema);
}

template <typename Device>
void implement_on(Library& library) {
  implement(library, schema, boxed<&forward<Device>>);
  implement(library, add_schema, boxed<&add_forward<Device>>);
  library.impl(full_name(forward_schema).c_str(), boxed<&forward_with_rstd<Device>>);
  library.impl(full_name(add_forward_schema).c_str(), boxed<&add_forward_with_rstd<Device>>);
  library.impl(full_name(backward_schema).c_str(), boxed<&backward<Device>>);
  library.impl(full_name(out_schema).c_str(), boxed<&forward_out<Device>>);
}

void implement_on_negative_views(Library& library) {
  library.impl(full_name(out_schema).c_str(), boxed<&forward_out_of_negative_views>);
}

NewTensor refuse(const OwnedHandle&, const std::optional<OwnedHandle>&, MaybeNumber, double) {
  refuse_layout(name);
}
std::tuple<NewTensor, NewTensor> refuse_add(const OwnedHandle&, const OwnedHandle&,
                                            const std::optional<OwnedHandle>&, MaybeNumber,
                                            double) {
  refuse_layout(add_name);
}
void refuse_all(Library& library) {
  implement(library, schema, boxed<&refuse>);
  implement(library, add_schema, boxed<&refuse_add>);
}

}  // namespace
}  // namespace opwright

OPWRIGHT_REGISTER(opwright::define_all, opwright::implement_on<opwright::OnCpu>,
                  opwright::implement_on<opwright::OnCuda>, opwright::refuse_all)
OPWRIGHT_KEY(Negative, opwright::implement_on_negative_views)
