// One macro binds your own kernel's launch function, which takes raw pointers, sizes and a stream,
// to torch. No torch here.
//
//   cudaError_t softsign(const float* x, float* out, int64_t n, cudaStream_t stream);
//   OPWRIGHT_KERNEL(softsign, "softsign(Tensor x) -> Tensor")
//
// The types of the function's parameters select its arguments:
//   const T*            one per Tensor of the schema: its elements, contiguous
//   T*                  one per result: memory to fill
//   Sizes               optional: the sizes of the Tensors, in order
//   int64_t             before the schema's ints, optional: one for the elements of the first
//                       Tensor, or two for its rows and columns (the last dimension)
//   int64_t, double, bool   the schema's int, float and bool arguments
//   cudaStream_t        in a .cu file; a function in a .cpp file has none, and serves the CPU
// It returns cudaError_t or nothing. T is the dtype: bind a template once per dtype, with the same
// schema. Results have the first Tensor's shape, or the shape that the macro's optional third
// argument, `Shape shape(const Sizes* tensors)`, returns.
#pragma once

#include <cstdint>
#include <utility>

#include "element.h"
#include "layout.h"
#include "schema.h"

#if defined(OPWRIGHT_WITH_CUDA) || defined(__CUDACC__)
#include <cuda_runtime_api.h>

#include "stream.h"
#endif

namespace opwright {

struct Sizes {
  const int64_t* sizes;
  int dims;

  int64_t operator[](int dim) const { return sizes[dim < 0 ? dim + dims : dim]; }
};

struct Shape {
  int dims;
  int64_t sizes[max_dims];
};

constexpr int max_results = 4;

struct KernelCall {
  const void* in[max_arguments];
  Sizes sizes[max_arguments];
  void* out[max_results];
  int64_t elements, rows, columns;  // of the first tensor
  int64_t integers[max_arguments];
  double reals[max_arguments];
  bool booleans[max_arguments];
  void* stream;
  int device;
};

// A type-erased launch function, in a list that the binding to torch reads.
struct Kernel {
  const char* schema;
  bool on_cuda;
  DType in[max_arguments], out[max_results];
  int (*run)(const KernelCall& call);  // a cudaError_t
  Shape (*shape)(const Sizes* tensors);
  const Kernel* next;
};
inline const Kernel* first_kernel = nullptr;

namespace kernel_signature {

template <typename T>
inline constexpr int dtype_of = -1;
#define OPWRIGHT_NUMBER(name, type) \
  template <>                       \
  inline constexpr int dtype_of<type> = static_cast<int>(DType::name);
OPWRIGHT_DTYPES(OPWRIGHT_NUMBER)
#undef OPWRIGHT_NUMBER

enum class Role { input, output, sizes, integer, real, boolean, stream, unknown };

template <typename T>
struct Parameter {
  static constexpr Role role = Role::unknown;
};
template <typename T>
struct Parameter<const T*> {
  static constexpr Role role = dtype_of<T> < 0 ? Role::unknown : Role::input;
  static constexpr int dtype = dtype_of<T>;
  static const T* of(const KernelCall& call, int i) { return static_cast<const T*>(call.in[i]); }
};
template <typename T>
struct Parameter<T*> {
  static constexpr Role role = dtype_of<T> < 0 ? Role::unknown : Role::output;
  static constexpr int dtype = dtype_of<T>;
  static T* of(const KernelCall& call, int i) { return static_cast<T*>(call.out[i]); }
};
template <>
struct Parameter<Sizes> {
  static constexpr Role role = Role::sizes;
  static Sizes of(const KernelCall& call, int i) { return call.sizes[i]; }
};
template <>
struct Parameter<int64_t> {
  static constexpr Role role = Role::integer;
  static int64_t of(const KernelCall& call, int i) { return call.integers[i]; }
};
template <>
struct Parameter<double> {
  static constexpr Role role = Role::real;
  static double of(const KernelCall& call, int i) { return call.reals[i]; }
};
template <>
struct Parameter<bool> {
  static constexpr Role role = Role::boolean;
  static bool of(const KernelCall& call, int i) { return call.booleans[i]; }
};
#if defined(OPWRIGHT_WITH_CUDA) || defined(__CUDACC__)
template <>
struct Parameter<cudaStream_t> {
  static constexpr Role role = Role::stream;
  static cudaStream_t of(const KernelCall& call, int) {
    return static_cast<cudaStream_t>(call.stream);
  }
};
template <>
struct Parameter<Stream> {
  static constexpr Role role = Role::stream;
  static Stream of(const KernelCall& call, int) {
    return {static_cast<cudaStream_t>(call.stream), call.device};
  }
};
#endif

// The parameter's index among those of its role.
template <typename... Params>
constexpr int place(int index) {
  constexpr Role roles[] = {Parameter<Params>::role..., Role::unknown};
  int before = 0;
  for (int i = 0; i < index; ++i) before += roles[i] == roles[index];
  return before;
}

template <typename... Params>
constexpr int count(Role role) {
  return (0 + ... + (Parameter<Params>::role == role));
}

// Later checks would only repeat this one in other words.
template <typename... Params>
constexpr bool check_types() {
  static_assert(
      count<Params...>(Role::unknown) == 0,
      "a launch function takes const T* and T* of the dtypes that torch has (float, double, Half, "
      "BFloat16, int8_t ... int64_t, uint8_t, Complex), Sizes, int64_t, double, bool and a "
      "cudaStream_t");
  return count<Params...>(Role::unknown) == 0;
}

template <auto launch, typename Text, typename Result, typename... Params>
struct Bound {
  static constexpr Schema schema = read_schema(Text::schema);
  static constexpr int sizes = count<Params...>(Role::integer) - schema.of(Kind::integer);

  static constexpr bool check() {
    static_assert(count<Params...>(Role::input) == schema.of(Kind::tensor),
                  "the launch function needs one `const T*` per Tensor of the schema");
    static_assert(count<Params...>(Role::output) == schema.results,
                  "the launch function needs one `T*` per result of the schema");
    static_assert(count<Params...>(Role::output) <= max_results, "a kernel has at most 4 results");
    static_assert(count<Params...>(Role::real) == schema.of(Kind::real),
                  "the launch function needs one `double` per float of the schema");
    static_assert(count<Params...>(Role::boolean) == schema.of(Kind::boolean),
                  "the launch function needs one `bool` per bool of the schema");
    static_assert(
        sizes >= 0 && sizes <= 2,
        "the launch function needs one `int64_t` per int of the schema, and before them none, one "
        "(the elements "
        "of the first Tensor) or two (its rows and columns); take `Sizes` for anything else");
    static_assert(count<Params...>(Role::sizes) <= schema.of(Kind::tensor),
                  "the launch function takes at most one `Sizes` per Tensor of the schema");
    static_assert(count<Params...>(Role::stream) <= 1, "a launch function has one stream");
#if defined(__CUDACC__)
    static_assert(
        count<Params...>(Role::stream) >= 1,
        "a launch function in a .cu file takes a cudaStream_t; without one it would serve "
        "the CPU, whose functions belong in a .cpp file");
#endif
    static_assert(schema.of(Kind::tensor) >= 1, "a kernel needs a Tensor, whose device it runs on");
    return true;
  }

  template <typename Param, int index>
  static Param argument(const KernelCall& call) {
    constexpr int at = place<Params...>(index);
    if constexpr (Parameter<Param>::role == Role::integer) {
      if constexpr (at < sizes)
        return sizes == 1 ? call.elements : (at == 0 ? call.rows : call.columns);
      return call.integers[at < sizes ? 0 : at - sizes];
    } else {
      return Parameter<Param>::of(call, at);
    }
  }

  template <size_t... I>
  static int run(const KernelCall& call, std::index_sequence<I...>) {
    if constexpr (std::is_void_v<Result>) {
      launch(argument<Params, I>(call)...);
      return 0;
    } else {
      return static_cast<int>(launch(argument<Params, I>(call)...));
    }
  }
  static int run(const KernelCall& call) { return run(call, std::index_sequence_for<Params...>{}); }

  template <typename Param>
  static void note(Kernel& kernel, int& inputs, int& outputs) {
    if constexpr (Parameter<Param>::role == Role::input)
      kernel.in[inputs++] = static_cast<DType>(Parameter<Param>::dtype);
    if constexpr (Parameter<Param>::role == Role::output)
      kernel.out[outputs++] = static_cast<DType>(Parameter<Param>::dtype);
  }

  static void enter(Kernel& kernel, Shape (*shape)(const Sizes*)) {
    int inputs = 0, outputs = 0;
    kernel.schema = Text::schema;
    kernel.on_cuda = count<Params...>(Role::stream) == 1;
    (note<Params>(kernel, inputs, outputs), ...);
    kernel.run = &run;
    kernel.shape = shape;
    kernel.next = first_kernel;
    first_kernel = &kernel;
  }
};

template <auto launch, typename Text, typename Result, typename... Params>
void enter(Result (*)(Params...), Kernel& kernel, Shape (*shape)(const Sizes*)) {
  if constexpr (check_schema<Text>() && check_types<Params...>()) {
    if constexpr (Bound<launch, Text, Result, Params...>::check())
      Bound<launch, Text, Result, Params...>::enter(kernel, shape);
  }
}

}  // namespace kernel_signature

// Adds a launch function to the list of kernels.
template <auto launch, typename Text>
void bind_kernel(Shape (*shape)(const Sizes*) = nullptr) {
  static Kernel kernel;
  kernel_signature::enter<launch, Text>(launch, kernel, shape);
}

}  // namespace opwright

#define OPWRIGHT_JOINED(a, b) OPWRIGHT_JOIN(a, b)
#define OPWRIGHT_JOIN(a, b) a##b
// The priority makes this constructor run before the one, without a priority, that registers the
// kernels with torch.
#define OPWRIGHT_KERNEL(launch, text, ...)                                                    \
  namespace {                                                                                 \
  struct OPWRIGHT_JOINED(OpwrightKernel, __LINE__) {                                          \
    static constexpr const char* schema = text;                                               \
  };                                                                                          \
  __attribute__((constructor(1000))) void OPWRIGHT_JOINED(opwright_bind, __LINE__)() {        \
    ::opwright::bind_kernel<&launch, OPWRIGHT_JOINED(OpwrightKernel, __LINE__)>(__VA_ARGS__); \
  }                                                                                           \
  }
