// Binds every row op of the extension to torch. Each becomes several ops, which have optional
// tensors, several results (one of another dtype), and a variant that writes into its argument.
#include "opwright/rows.h"

#include <limits>

#include "opwright/torch/arguments.h"
#include "opwright/torch/boxing.h"
#include "opwright/torch/cuda_device.h"
#include "opwright/torch/parallel.h"
#include "opwright/torch/register.h"
#include "rows_ops.h"

namespace opwright {
namespace {

using MaybeTensor = std::optional<Tensor>;
using MaybeNumber = std::optional<double>;

// --- arguments ----------------------------------------------------

int64_t row_size(const Tensor& x) {
  return x.sizes[x.dims - 1];
}

// Checks the arguments and returns the dtype of x, which `third` must share. The weight may have
// any dtype that the op takes.
DType check(OpName op, DTypes dtypes, const Tensor& x, const MaybeTensor& weight,
            const Tensor* third, const char* third_name) {
  const Argument arguments[] = {{"x", &x}, {third ? third_name : "", third}};
  const DType dtype = checked_dtype(op, arguments, third ? 2 : 1, dtypes);
  if (x.dims == 0) fail(op, ": x must have at least one dimension");
  if (x.dims > max_dims)
    fail(op, ": tensors of more than ", std::to_string(max_dims),
         " dimensions are not supported, got ", std::to_string(x.dims));
  if (weight) {
    const Argument argument{"weight", &*weight};
    checked_dtype(op, &argument, 1, dtypes);
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

// The layout of the rows of tensors that have the same shape.
Layout rows_of(OpName op, std::initializer_list<const Tensor*> tensors) {
  View views[max_inputs];
  int count = 0;
  for (const Tensor* tensor : tensors)
    views[count++] = {tensor->sizes, tensor->strides, static_cast<int>(tensor->dims) - 1};
  const Layout rows = contiguous_layout(views, count);
  if (rows.numel > std::numeric_limits<int32_t>::max() ||
      row_size(**tensors.begin()) > std::numeric_limits<int32_t>::max())
    fail(op, ": more than 2^31 - 1 rows, or elements in a row, are not supported");
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

// The dtype of states, of sums over rows, and of a weight whose dtype differs from x's.
DType number_dtype(DType dtype) {
  return dtype == DType::float64 ? DType::float64 : DType::float32;
}

NewTensor new_like(OpName op, const Tensor& x, int32_t dtype) {
  return new_contiguous(op, x, dtype, x.dims, x.sizes);
}

NewTensor new_state(OpName op, const Tensor& x, DType dtype) {
  int64_t sizes[max_dims];
  std::copy(x.sizes, x.sizes + x.dims, sizes);
  sizes[x.dims - 1] = 1;
  return new_contiguous(op, x, torch_dtype(number_dtype(dtype)), x.dims, sizes);
}

// An empty tensor: an op's result for a gradient that nobody needs.
NewTensor nothing(OpName op, const Tensor& like, int32_t dtype) {
  const int64_t sizes[] = {0};
  return new_contiguous(op, like, dtype, 1, sizes);
}

void copy(AtenTensorHandle to, AtenTensorHandle from) {
  TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(to, from, /*non_blocking=*/0));
}

// The tensor itself if the elements of a row are adjacent, else a copy that `kept` owns.
const Tensor& with_rows(OpName op, const Tensor& tensor, MaybeTensor& kept) {
  if (tensor.strides[tensor.dims - 1] == 1 || row_size(tensor) <= 1) return tensor;
  return kept.emplace(copied(op, tensor, tensor.dtype));
}

// The data of a tensor that kernels need contiguous and aligned; a copy is owned by `kept`.
const void* plain_data(OpName op, const Tensor& tensor, int32_t dtype, MaybeTensor& kept) {
  const bool is_plain = tensor.dtype == dtype && is_contiguous(tensor) && is_aligned(tensor);
  return is_plain ? tensor.data() : kept.emplace(copied(op, tensor, dtype)).data();
}

// The weight as kernels read it: of x's dtype, or of the compute dtype if its own dtype differs or
// there is an offset.
class Weight {
 public:
  Weight(OpName op, const MaybeTensor& weight, DType x_dtype, double with_offset) {
    if (!weight) return;  // the offset is ignored too
    offset = with_offset;
    wide =
        (weight->dtype != torch_dtype(x_dtype) || offset != 0) && number_dtype(x_dtype) != x_dtype;
    dtype = torch_dtype(wide ? number_dtype(x_dtype) : x_dtype);
    data = plain_data(op, *weight, dtype, copy_);
  }

  bool wide = false;
  double offset = 0;
  int32_t dtype = 0;
  const void* data = nullptr;

 private:
  MaybeTensor copy_;
};

// --- devices ------------------------------------------------------

template <typename Op>
constexpr OpName name_of{row_names<Op>[0]};
template <typename Op>
constexpr OpName add_name_of{row_names<Op>[1]};

template <typename Op>
struct OnCpu {
  explicit OnCpu(const Tensor&) {}

  void forward(const RowProblem& problem) const {
    parallel(problem.rows.numel, problem.size,
             [&](int64_t begin, int64_t end) { forward_on_cpu(Op{}, problem, begin, end); });
  }
  bool adds(const RowProblem&, bool) const { return true; }
  void add(DType, const void*, const void*, void*, int64_t) const {}
  NewTensor new_partials(const Tensor& like, const RowProblem& problem, DType) const {
    const int64_t sizes[] = {cpu::column_parts, problem.size};
    return new_contiguous(name_of<Op>, like, torch_dtype(DType::float64), 2, sizes);
  }
  void backward(const RowProblem& problem) const {
    const int64_t part_elements = problem.rows.numel * problem.size / cpu::column_parts + 1;
    parallel(cpu::column_parts, part_elements, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) backward_on_cpu(Op{}, problem, part);
    });
    if (!problem.column_out) return;
    parallel(problem.size, cpu::column_parts,
             [&](int64_t begin, int64_t end) { sum_on_cpu(Op{}, problem, begin, end); });
  }
};

#if defined(OPWRIGHT_WITH_CUDA)
template <typename Op>
struct OnCuda {
  explicit OnCuda(const Tensor& like) : device(like), stream(current_stream(name_of<Op>, like)) {}

  void forward(const RowProblem& problem) const {
    check_launch(name_of<Op>, forward_on_cuda(Op{}, problem, stream));
  }
  bool adds(const RowProblem& problem, bool backward) const {
    return adds_on_cuda(Op{}, problem, backward);
  }
  // Adds on its own, for rows whose kernels do not.
  void add(DType dtype, const void* a, const void* b, void* sum, int64_t numel) const {
    check_launch(name_of<Op>, on_cuda(typename Op::Add{}, dtype, {{a, b}, {sum}}, nullptr,
                                      dense_layout(2, numel), stream));
  }
  NewTensor new_partials(const Tensor& like, const RowProblem& problem, DType numbers) const {
    const int64_t sizes[] = {partials_on_cuda(Op{}, problem, stream), problem.size};
    return new_contiguous(name_of<Op>, like, torch_dtype(numbers), 2, sizes);
  }
  void backward(const RowProblem& problem) const {
    check_launch(name_of<Op>, backward_on_cuda(Op{}, problem, stream));
  }

  OnDeviceOf device;
  Stream stream;
};
#else
template <typename Op>
struct OnCuda : OnCpu<Op> {
  explicit OnCuda(const Tensor& like) : OnCpu<Op>(like) { fail_without_cuda(name_of<Op>); }
};
#endif

// --- ops ----------------------------------------------------------

// A call's arguments other than x.
struct Norm {
  const MaybeTensor& weight;
  MaybeNumber number;
  double offset;
  const Tensor* residual = nullptr;  // of x's shape and dtype
  void *state = nullptr, *sum = nullptr;
};

template <typename Op, typename Device>
void run_forward(const Tensor& x, const Norm& norm, DType dtype, void* out) {
  constexpr OpName op = name_of<Op>;
  const Device device(x);
  if (x.numel() == 0) return;
  MaybeTensor kept, kept_residual;
  const Tensor& in = with_rows(op, x, kept);
  const Weight factors(op, norm.weight, dtype, norm.offset);
  RowProblem problem{dtype,       factors.wide, row_size(x), rows_of(op, {&in}),
                     {in.data()}, factors.data};
  problem.out[0] = out;
  problem.row_out = norm.state;
  problem.number = norm.number ? *norm.number
                   : dtype == DType::float64
                       ? Op::template default_number<double>
                       : static_cast<double>(Op::template default_number<float>);
  problem.weight_offset = factors.offset;
  if (norm.residual) problem.added = plain_data(op, *norm.residual, x.dtype, kept_residual);
  problem.sum = norm.sum;
  MaybeTensor kept_x;
  if (norm.residual && !device.adds(problem, /*backward=*/false)) {
    device.add(dtype, plain_data(op, x, x.dtype, kept_x), problem.added, norm.sum, x.numel());
    const int64_t rows[] = {x.numel() / row_size(x)}, strides[] = {row_size(x)};
    const View view{rows, strides, 1};
    problem.rows = contiguous_layout(&view, 1);
    problem.in[0] = norm.sum;
    problem.added = problem.sum = nullptr;
  }
  device.forward(problem);
}

template <typename Op, typename Device>
NewTensor forward(const Tensor& x, const MaybeTensor& weight, MaybeNumber number, double offset) {
  constexpr OpName op = name_of<Op>;
  const DType dtype = check(op, Op::dtypes, x, weight, nullptr, nullptr);
  NewTensor out = new_like(op, x, x.dtype);
  run_forward<Op, Device>(x, {weight, number, offset}, dtype, out.data());
  return out;
}

template <typename Op, typename Device>
std::tuple<NewTensor, NewTensor> forward_with_state(const Tensor& x, const MaybeTensor& weight,
                                                    MaybeNumber number, double offset) {
  constexpr OpName op = name_of<Op>;
  const DType dtype = check(op, Op::dtypes, x, weight, nullptr, nullptr);
  NewTensor out = new_like(op, x, x.dtype), state = new_state(op, x, dtype);
  run_forward<Op, Device>(x, {weight, number, offset, nullptr, state.data()}, dtype, out.data());
  return {std::move(out), std::move(state)};
}

template <typename Op, typename Device>
std::tuple<NewTensor, NewTensor> add_forward(const Tensor& x, const Tensor& residual,
                                             const MaybeTensor& weight, MaybeNumber number,
                                             double offset) {
  constexpr OpName op = add_name_of<Op>;
  const DType dtype = check(op, Op::dtypes, x, weight, &residual, "residual");
  NewTensor out = new_like(op, x, x.dtype), sum = new_like(op, x, x.dtype);
  run_forward<Op, Device>(x, {weight, number, offset, &residual, nullptr, sum.data()}, dtype,
                          out.data());
  return {std::move(out), std::move(sum)};
}

template <typename Op, typename Device>
std::tuple<NewTensor, NewTensor, NewTensor> add_forward_with_state(const Tensor& x,
                                                                   const Tensor& residual,
                                                                   const MaybeTensor& weight,
                                                                   MaybeNumber number,
                                                                   double offset) {
  constexpr OpName op = add_name_of<Op>;
  const DType dtype = check(op, Op::dtypes, x, weight, &residual, "residual");
  NewTensor out = new_like(op, x, x.dtype), sum = new_like(op, x, x.dtype),
            state = new_state(op, x, dtype);
  run_forward<Op, Device>(x, {weight, number, offset, &residual, state.data(), sum.data()}, dtype,
                          out.data());
  return {std::move(out), std::move(sum), std::move(state)};
}

// `out` may be x itself: the thread that writes an element has read it before.
template <typename Op, typename Device>
void forward_out(const Tensor& x, const MaybeTensor& weight, MaybeNumber number, double offset,
                 const Tensor& out) {
  constexpr OpName op = name_of<Op>;
  const DType dtype = check(op, Op::dtypes, x, weight, &out, "out");
  if (!is_contiguous(out)) fail(op, ": out must be contiguous");
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
    fail(op, ": out overlaps x or weight without being x; give it memory of its own");
  run_forward<Op, Device>(x, {weight, number, offset}, dtype, data);
}

// The same for views that torch negates lazily, such as z.conj().imag. torch's own fallback for
// them expects an op to return the tensor that it writes into, and aborts the process otherwise.
template <typename Op>
void forward_out_of_negative_views(const Tensor& x, const MaybeTensor& weight, MaybeNumber number,
                                   double offset, const Tensor& out) {
  constexpr OpName op = name_of<Op>;
  const Tensor own_x = copied(op, x, x.dtype), own_out = copied(op, out, out.dtype);
  MaybeTensor own_weight;
  if (weight) own_weight.emplace(copied(op, *weight, weight->dtype));
  const bool on_cpu = x.device_type == aoti_torch_device_type_cpu();
  const auto run = on_cpu ? forward_out<Op, OnCpu<Op>> : forward_out<Op, OnCuda<Op>>;
  run(own_x, own_weight, number, offset, own_out);
  copy(out.handle(), own_out.handle());
}

template <typename Op, typename Device>
std::tuple<NewTensor, NewTensor> backward(const Tensor& grad, const Tensor& x,
                                          const MaybeTensor& weight, const Tensor& state,
                                          bool needs_x, bool needs_weight, double offset,
                                          const MaybeTensor& added) {
  constexpr OpName op = name_of<Op>;
  const DType dtype = check(op, Op::dtypes, x, weight, &grad, "grad");
  const DType numbers = number_dtype(dtype);
  const Device device(x);
  MaybeTensor kept_grad, kept_x;
  const Tensor &own_grad = with_rows(op, grad, kept_grad), &own_x = with_rows(op, x, kept_x);
  const Layout rows = rows_of(op, {&own_grad, &own_x});
  if (state.dtype != torch_dtype(numbers) || state.numel() != rows.numel || !is_contiguous(state) ||
      device_name(state) != device_name(x))
    fail(op, ": state must hold one ", dtype_names[static_cast<int>(numbers)],
         " for each row of x, on its device and without gaps");
  if (added) check(op, Op::dtypes, x, weight, &*added, "added");
  needs_weight = needs_weight && weight;
  const Weight factors(op, weight, dtype, offset);
  NewTensor grad_x = needs_x ? new_like(op, x, x.dtype) : nothing(op, x, x.dtype);
  NewTensor grad_weight = needs_weight ? new_like(op, *weight, factors.dtype)
                                       : nothing(op, x, weight ? weight->dtype : x.dtype);
  if (row_size(x) > 0 && (needs_x || needs_weight)) {
    RowProblem problem{
        dtype,        factors.wide, row_size(x), rows, {own_grad.data(), own_x.data()},
        factors.data, state.data()};
    MaybeTensor kept_added;
    problem.weight_offset = factors.offset;
    if (needs_x) problem.out[0] = grad_x.data();
    const void* more = needs_x && added ? plain_data(op, *added, x.dtype, kept_added) : nullptr;
    problem.added = more;
    if (more && !device.adds(problem, /*backward=*/true)) problem.added = nullptr;
    if (needs_weight) problem.column_out = grad_weight.data();
    const NewTensor partial =
        needs_weight ? device.new_partials(x, problem, numbers) : nothing(op, x, x.dtype);
    problem.partial = partial.data();
    device.backward(problem);
    if (more && !problem.added) device.add(dtype, problem.out[0], more, problem.out[0], x.numel());
  }
  if (needs_weight && weight->dtype != factors.dtype) {
    NewTensor converted = new_like(op, *weight, weight->dtype);
    copy(converted.handle(), grad_weight.handle());
    grad_weight = std::move(converted);
  }
  return {std::move(grad_x), std::move(grad_weight)};
}

// --- registration -------------------------------------------------

// The schemas of the ops that are made from one row op.
template <typename Op>
struct Schemas {
  const std::string name = row_names<Op>[0], number = std::string("float? ") + Op::number;
  const std::string defaults = "Tensor? weight=None, " + number + "=None, float weight_offset=0.0";
  const std::string given = "Tensor? weight, " + number + ", float weight_offset=0.0";
  const std::string plain = name + "(Tensor x, " + defaults + ") -> Tensor";
  const std::string add =
      "add_" + name + "(Tensor x, Tensor residual, " + defaults + ") -> (Tensor, Tensor)";
  const std::string forward = "_" + name + "_forward(Tensor x, " + given + ") -> (Tensor, Tensor)";
  const std::string add_forward = "_add_" + name + "_forward(Tensor x, Tensor residual, " + given +
                                  ") -> (Tensor, Tensor, Tensor)";
  const std::string backward =
      "_" + name +
      "_backward(Tensor grad, Tensor x, Tensor? weight, Tensor state, bool needs_x, "
      "bool needs_weight, float weight_offset=0.0, Tensor? added=None) -> (Tensor, Tensor)";
  const std::string out = name + "_out(Tensor x, " + defaults + ", *, Tensor(a!) out) -> ()";
};

template <typename Op>
void define_op(Library& library) {
  const Schemas<Op> schemas;
  define(library, schemas.plain.c_str());
  describe(name_of<Op>, Op::dtypes);
  define(library, schemas.add.c_str());
  describe(add_name_of<Op>, Op::dtypes);
  for (const auto* schema :
       {&schemas.forward, &schemas.add_forward, &schemas.backward, &schemas.out})
    library.def(schema->c_str());
}

template <typename Op, typename Device>
void implement_op(Library& library) {
  const Schemas<Op> schemas;
  const auto bind = [&](const std::string& schema, BoxedKernel* kernel) {
    library.impl(full_name(schema.c_str()).c_str(), kernel);
  };
  implement(library, schemas.plain.c_str(), boxed<&forward<Op, Device>>);
  implement(library, schemas.add.c_str(), boxed<&add_forward<Op, Device>>);
  bind(schemas.forward, boxed<&forward_with_state<Op, Device>>);
  bind(schemas.add_forward, boxed<&add_forward_with_state<Op, Device>>);
  bind(schemas.backward, boxed<&backward<Op, Device>>);
  bind(schemas.out, boxed<&forward_out<Op, Device>>);
}

template <typename Op>
NewTensor refuse(const OwnedHandle&, const std::optional<OwnedHandle>&, MaybeNumber, double) {
  refuse_layout(name_of<Op>);
}
template <typename Op>
std::tuple<NewTensor, NewTensor> refuse_add(const OwnedHandle&, const OwnedHandle&,
                                            const std::optional<OwnedHandle>&, MaybeNumber,
                                            double) {
  refuse_layout(add_name_of<Op>);
}
template <typename Op>
void refuse_op(Library& library) {
  const Schemas<Op> schemas;
  implement(library, schemas.plain.c_str(), boxed<&refuse<Op>>);
  implement(library, schemas.add.c_str(), boxed<&refuse_add<Op>>);
}

template <typename... Op>
struct All {
  explicit All(OpList<Op...>) {}
  static void define(Library& library) { (define_op<Op>(library), ...); }
  static void on_cpu(Library& library) { (implement_op<Op, OnCpu<Op>>(library), ...); }
  static void on_cuda(Library& library) { (implement_op<Op, OnCuda<Op>>(library), ...); }
  static void refuse(Library& library) { (refuse_op<Op>(library), ...); }
  static void on_negative_views(Library& library) {
    (library.impl(full_name(Schemas<Op>().out.c_str()).c_str(),
                  boxed<&forward_out_of_negative_views<Op>>),
     ...);
  }
};
using Rows = decltype(All(RowsOps{}));

}  // namespace
}  // namespace opwright

OPWRIGHT_REGISTER(opwright::Rows::define, opwright::Rows::on_cpu, opwright::Rows::on_cuda,
                  opwright::Rows::refuse)
OPWRIGHT_KEY(Negative, opwright::Rows::on_negative_views)
