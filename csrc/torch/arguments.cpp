// The one check of what the ops are given: see arguments.h.
#include "arguments.h"

#include <utility>

namespace cuda_ext {
namespace {

struct Supported {
  int32_t torch_dtype;
  DType dtype;
  const char* name;
};

// torch numbers its dtypes; the shims tell the numbers of the torch that is loaded.
const auto& supported() {
  static const Supported table[] = {
      {aoti_torch_dtype_float32(), DType::float32, "float32"},
      {aoti_torch_dtype_float16(), DType::float16, "float16"},
      {aoti_torch_dtype_bfloat16(), DType::bfloat16, "bfloat16"},
      {aoti_torch_dtype_float64(), DType::float64, "float64"},
      {aoti_torch_dtype_int8(), DType::int8, "int8"},
      {aoti_torch_dtype_int16(), DType::int16, "int16"},
      {aoti_torch_dtype_int32(), DType::int32, "int32"},
      {aoti_torch_dtype_int64(), DType::int64, "int64"},
      {aoti_torch_dtype_uint8(), DType::uint8, "uint8"},
      {aoti_torch_dtype_complex64(), DType::complex64, "complex64"},
      {aoti_torch_dtype_complex128(), DType::complex128, "complex128"},
  };
  return table;
}

const Supported* find(int32_t torch_dtype) {
  for (const auto& entry : supported()) {
    if (entry.torch_dtype == torch_dtype) return &entry;
  }
  return nullptr;
}

std::string name_of(int32_t torch_dtype) {
  if (const auto* entry = find(torch_dtype)) return entry->name;
  const std::pair<int32_t, const char*> others[] = {
      {aoti_torch_dtype_bool(), "bool"},
      {aoti_torch_dtype_uint16(), "uint16"},
      {aoti_torch_dtype_uint32(), "uint32"},
      {aoti_torch_dtype_uint64(), "uint64"},
      {aoti_torch_dtype_complex32(), "complex32"},
      {aoti_torch_dtype_float8_e5m2(), "float8_e5m2"},
      {aoti_torch_dtype_float8_e4m3fn(), "float8_e4m3fn"},
      {aoti_torch_dtype_float8_e5m2fnuz(), "float8_e5m2fnuz"},
      {aoti_torch_dtype_float8_e4m3fnuz(), "float8_e4m3fnuz"},
  };
  for (const auto& [number, name] : others) {
    if (number == torch_dtype) return name;
  }
  return "number " + std::to_string(torch_dtype);
}

const char* name_of(DType dtype) {
  for (const auto& entry : supported()) {
    if (entry.dtype == dtype) return entry.name;
  }
  return "?";
}

std::string supported_names() {
  std::string names;
  for (const auto& entry : supported())
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

std::string device_name(const Tensor& tensor) {
  if (tensor.device_type == aoti_torch_device_type_cpu()) return "cpu";
  const bool is_cuda = tensor.device_type == aoti_torch_device_type_cuda();
  return (is_cuda ? "cuda:" : "device ") + std::to_string(tensor.device_index);
}

View view_of(const Tensor& tensor) {
  return {tensor.sizes, tensor.strides, static_cast<int>(tensor.dims)};
}

}  // namespace

DType checked_dtype(const char* op, const Tensor& a, const Tensor* b) {
  const int32_t dtype = a.dtype;
  if (b) {
    if (a.device_type != b->device_type || a.device_index != b->device_index) {
      fail(op, ": a is on ", device_name(a), " and b is on ", device_name(*b),
           "; move one of them with .to()");
    }
    if (dtype != b->dtype) {
      fail(op, ": a is ", name_of(dtype), " and b is ", name_of(b->dtype),
           "; convert one of them with .to()");
    }
  }
  const auto* entry = find(dtype);
  if (!entry)
    fail(op, ": dtype ", name_of(dtype), " is not supported; use one of ", supported_names());
  return entry->dtype;
}

void check_scalar(const char* op, DType dtype, const Scalar& value) {
  const bool is_complex = dtype == DType::complex64 || dtype == DType::complex128;
  const bool is_floating = dtype == DType::float16 || dtype == DType::bfloat16 ||
                           dtype == DType::float32 || dtype == DType::float64;
  if (value.kind == Scalar::Kind::complex && !is_complex) {
    fail(op, ": a complex value cannot be added to a ", name_of(dtype),
         " tensor without changing its dtype; convert the tensor with .to(torch.complex64)");
  }
  if (value.kind == Scalar::Kind::real && !is_floating && !is_complex) {
    fail(op, ": a float value cannot be added to a ", name_of(dtype),
         " tensor without changing its dtype; pass an int, or convert the tensor with .to()");
  }
}

Layout checked_layout(const char* op, const Tensor& a, const Tensor* b) {
  Layout layout;
  const View view_a = view_of(a);
  const View view_b = b ? view_of(*b) : View{};
  const std::string error = make_layout(view_a, b ? &view_b : nullptr, layout);
  if (!error.empty()) fail(op, ": ", error);
  return layout;
}

}  // namespace cuda_ext
