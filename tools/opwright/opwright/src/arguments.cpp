// Checks the ops' arguments and explains failed allocations: see arguments.h.
#include "opwright/torch/arguments.h"

#include <algorithm>
#include <utility>

#include "opwright/layout.h"
#include "opwright/torch/cuda_device.h"

namespace opwright {
namespace {

// torch numbers its dtypes; the shims return the numbers of the loaded torch.
const int32_t* torch_numbers() {
  static const int32_t numbers[] = {
#define OPWRIGHT_NUMBER(name, type) aoti_torch_dtype_##name(),
      OPWRIGHT_DTYPES(OPWRIGHT_NUMBER)
#undef OPWRIGHT_NUMBER
  };
  return numbers;
}

// The dtype with this number in torch, or -1 if there is none.
int find(int32_t number) {
  for (int i = 0; i < dtype_count; ++i) {
    if (torch_numbers()[i] == number) return i;
  }
  return -1;
}

std::string name_of(int32_t number) {
  if (const int known = find(number); known >= 0) return dtype_names[known];
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
  for (const auto& [other, name] : others) {
    if (other == number) return name;
  }
  return "number " + std::to_string(number);
}

std::string names_of(DTypes dtypes) {
  std::string names;
  for (int i = 0; i < dtype_count; ++i) {
    if (dtypes.has(static_cast<DType>(i)))
      names += (names.empty() ? "" : ", ") + std::string(dtype_names[i]);
  }
  return names;
}

std::string filled_in(std::string text, const std::string& name) {
  const size_t at = text.find("{}");
  return at == std::string::npos ? text : text.replace(at, 2, name);
}

}  // namespace

std::string argument_name(const char* schema, int index) {
  const std::string text = schema;
  size_t at = text.find('(') + 1;
  for (; index > 0; --index) at = text.find(", ", at) + 2;
  const size_t begin = text.find(' ', at) + 1;
  return text.substr(begin, text.find_first_of(",)=", begin) - begin);
}

std::string dtype_name(int32_t number) {
  return name_of(number);
}

int32_t torch_dtype(DType dtype) {
  return torch_numbers()[static_cast<int>(dtype)];
}

DType checked_dtype(OpName op, const Argument* arguments, int count, DTypes dtypes,
                    const char* refusal) {
  const Tensor& first = *arguments[0].tensor;
  for (int i = 1; i < count; ++i) {
    const Tensor& other = *arguments[i].tensor;
    if (other.device_type != first.device_type || other.device_index != first.device_index) {
      fail(op, ": ", arguments[0].name, " is on ", device_name(first), " and ", arguments[i].name,
           " is on ", device_name(other), "; move one of them with .to()");
    }
    if (other.dtype != first.dtype) {
      fail(op, ": ", arguments[0].name, " is ", name_of(first.dtype), " and ", arguments[i].name,
           " is ", name_of(other.dtype), "; convert one of them with .to()");
    }
  }
  const int dtype = find(first.dtype);
  if (dtype >= 0 && dtypes.has(static_cast<DType>(dtype))) return static_cast<DType>(dtype);
  if (dtype >= 0 && refusal) fail(op, ": ", filled_in(refusal, dtype_names[dtype]));
  fail(op, ": dtype ", name_of(first.dtype), " is not supported; use one of ", names_of(dtypes));
}

void fail_allocation(OpName op, const Tensor& like, int32_t dtype, int64_t dims,
                     const int64_t* sizes) {
  // An error left by an earlier kernel makes allocations fail too.
  if (like.device_type == aoti_torch_device_type_cuda()) check_earlier_kernels(op);
  if (torch_exception_get_what_without_backtrace)
    fail(op, ": ", torch_exception_get_what_without_backtrace());
  const int known = find(dtype);
  const int64_t element = known >= 0 ? element_sizes[known] : 1;
  const int64_t bytes = std::accumulate(sizes, sizes + dims, element, std::multiplies<>());
  fail(op, ": allocating ", std::to_string(bytes), " bytes on ", device_name(like),
       " failed: out of memory");
}

bool is_contiguous(const Tensor& tensor) {
  int64_t expected = 1;
  for (int64_t d = tensor.dims - 1; d >= 0; --d) {
    if (tensor.sizes[d] != 1 && tensor.strides[d] != expected && tensor.numel() > 0) return false;
    expected *= tensor.sizes[d];
  }
  return true;
}

NewTensor new_contiguous(OpName op, const Tensor& like, int32_t dtype, int64_t dims,
                         const int64_t* sizes) {
  int64_t strides[max_dims];
  int64_t stride = 1;
  for (int64_t d = dims - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  return {op, like, dtype, dims, sizes, strides};
}

Tensor copied(OpName op, const Tensor& from, int32_t dtype) {
  NewTensor made = new_contiguous(op, from, dtype, from.dims, from.sizes);
  TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(made.handle(), from.handle(), /*non_blocking=*/0));
  return Tensor(made.release());
}

}  // namespace opwright
