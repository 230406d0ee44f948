// The one check of what the ops are given: see arguments.h.
#include "arguments.h"

namespace cuda_ext {
namespace {

using torch::headeronly::ScalarType;

struct Supported {
  ScalarType scalar_type;
  DType dtype;
  const char* name;
};

constexpr Supported supported[] = {
    {ScalarType::Float, DType::float32, "float32"},
    {ScalarType::Half, DType::float16, "float16"},
    {ScalarType::BFloat16, DType::bfloat16, "bfloat16"},
    {ScalarType::Double, DType::float64, "float64"},
    {ScalarType::Char, DType::int8, "int8"},
    {ScalarType::Short, DType::int16, "int16"},
    {ScalarType::Int, DType::int32, "int32"},
    {ScalarType::Long, DType::int64, "int64"},
    {ScalarType::Byte, DType::uint8, "uint8"},
    {ScalarType::ComplexFloat, DType::complex64, "complex64"},
    {ScalarType::ComplexDouble, DType::complex128, "complex128"},
};

const Supported* find(ScalarType type) {
  for (const auto& entry : supported) {
    if (entry.scalar_type == type) return &entry;
  }
  return nullptr;
}

std::string name_of(ScalarType type) {
  const auto* entry = find(type);
  if (entry) return entry->name;
  return type == ScalarType::Bool ? "bool" : torch::headeronly::toString(type);
}

const char* name_of(DType dtype) {
  for (const auto& entry : supported) {
    if (entry.dtype == dtype) return entry.name;
  }
  return "?";
}

std::string supported_names() {
  std::string names;
  for (const auto& entry : supported) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

int32_t device_type(const Tensor& tensor) {
  int32_t type;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(tensor.get(), &type));
  return type;
}

std::string device_name(const Tensor& tensor) {
  if (tensor.is_cpu()) return "cpu";
  return (tensor.is_cuda() ? "cuda:" : "device ") + std::to_string(tensor.get_device_index());
}

View view_of(const Tensor& tensor) {
  return {tensor.sizes().data(), tensor.strides().data(), static_cast<int>(tensor.dim())};
}

}  // namespace

DType checked_dtype(const char* op, const Tensor& a, const Tensor* b) {
  const auto type = a.scalar_type();
  if (b) {
    check(device_type(a) == device_type(*b) && a.get_device_index() == b->get_device_index(), op,
          ": a is on ", device_name(a), " and b is on ", device_name(*b), "; move one of them with .to()");
    const auto other = b->scalar_type();
    check(type == other, op, ": a is ", name_of(type), " and b is ", name_of(other),
          "; convert one of them with .to()");
  }
  const auto* entry = find(type);
  check(entry != nullptr, op, ": dtype ", name_of(type), " is not supported; use one of ", supported_names());
  return entry->dtype;
}

void check_scalar(const char* op, DType dtype, const Scalar& value) {
  const bool is_complex = dtype == DType::complex64 || dtype == DType::complex128;
  const bool is_floating = dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::float32 ||
                           dtype == DType::float64;
  check(value.kind != Scalar::Kind::complex || is_complex, op, ": a complex value cannot be added to a ",
        name_of(dtype), " tensor; convert the tensor with .to(torch.complex64)");
  check(value.kind != Scalar::Kind::real || is_floating || is_complex, op, ": a float value cannot be added to an ",
        name_of(dtype), " tensor without changing its dtype; pass an int, or convert the tensor with .to()");
}

Layout checked_layout(const char* op, const Tensor& a, const Tensor* b) {
  Layout layout;
  const View view_a = view_of(a);
  const View view_b = b ? view_of(*b) : View{};
  const std::string error = make_layout(view_a, b ? &view_b : nullptr, layout);
  check(error.empty(), op, ": ", error);
  return layout;
}

}  // namespace cuda_ext
