// Checks the dtypes and devices of all ops' arguments, and makes contiguous tensors.
#pragma once

#include "opwright/element.h"
#include "stable_abi.h"

namespace opwright {

// A tensor and its name in the op's schema.
struct Argument {
  std::string name;
  const Tensor* tensor;
};

// The dtype that all of the tensors have. Throws if their dtypes or devices differ, or if `dtypes`
// lacks the dtype; `refusal` may then say why, with {} for the dtype's name.
DType checked_dtype(OpName op, const Argument* arguments, int count, DTypes dtypes,
                    const char* refusal = nullptr);

// The name of the schema's argument at `index`.
std::string argument_name(const char* schema, int index);

// The name of the dtype with this number in the loaded torch.
std::string dtype_name(int32_t number);

// The number of a dtype in the loaded torch.
int32_t torch_dtype(DType dtype);

bool is_contiguous(const Tensor& tensor);

// A new contiguous tensor on the device of `like`, with at most max_dims dimensions.
NewTensor new_contiguous(OpName op, const Tensor& like, int32_t dtype, int64_t dims,
                         const int64_t* sizes);

// A contiguous copy, of the given dtype, of a tensor of any layout.
Tensor copied(OpName op, const Tensor& from, int32_t dtype);

}  // namespace opwright
