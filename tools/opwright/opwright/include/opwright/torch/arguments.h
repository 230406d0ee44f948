// The one check of what the ops are given, dtypes and devices; tensors without gaps.
#pragma once

#include "opwright/element.h"
#include "stable_abi.h"

namespace opwright {

// A tensor and the name by which the op's schema knows it.
struct Argument {
  std::string name;
  const Tensor* tensor;
};

// The dtype that all of the op's tensors have; throws where they differ, lie on different devices,
// or `dtypes` does not have it. `refusal` says why not, with {} for the dtype's name, or is null.
DType checked_dtype(OpName op, const Argument* arguments, int count, DTypes dtypes,
                    const char* refusal = nullptr);

// The name of the schema's argument of that number.
std::string argument_name(const char* schema, int index);

// The name of the dtype that the torch that is loaded has that number for.
std::string dtype_name(int32_t number);

// The number that the torch that is loaded has for a dtype.
int32_t torch_dtype(DType dtype);

bool is_contiguous(const Tensor& tensor);

// A new tensor without gaps, on the device of `like`, of up to max_dims dimensions.
NewTensor new_contiguous(OpName op, const Tensor& like, int32_t dtype, int64_t dims,
                         const int64_t* sizes);

// A contiguous copy of a tensor of any layout, of that dtype.
Tensor copied(OpName op, const Tensor& from, int32_t dtype);

}  // namespace opwright
