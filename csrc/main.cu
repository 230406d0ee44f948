// The standalone program: checks every kernel and dtype against the CPU's result, then times them.
// No torch.
//
//   standalone            check and time
//   standalone --check    check only
//
// Exit status: 0 all right, 1 a mismatch, 2 no usable GPU.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/add.h"
#include "kernels/cuda_error.h"

namespace {

using cuda_ext::DType;
using cuda_ext::Layout;
using cuda_ext::Scalar;
using cuda_ext::Stream;
using cuda_ext::View;

struct NamedDType {
  DType dtype;
  const char* name;
  size_t size;
};

constexpr NamedDType dtypes[] = {{DType::float16, "float16", 2},
                                 {DType::bfloat16, "bfloat16", 2},
                                 {DType::float32, "float32", 4},
                                 {DType::float64, "float64", 8},
                                 {DType::int8, "int8", 1},
                                 {DType::int16, "int16", 2},
                                 {DType::int32, "int32", 4},
                                 {DType::int64, "int64", 8},
                                 {DType::uint8, "uint8", 1},
                                 {DType::complex64, "complex64", 8},
                                 {DType::complex128, "complex128", 16}};

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cuda_ext::explain(error).c_str());
  std::exit(2);
}
#define CHECK_CUDA(call) check((call), #call)

class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t bytes) {
    CHECK_CUDA(cudaMalloc(&data_, std::max<size_t>(bytes, 1)));
  }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  char* get() const { return static_cast<char*>(data_); }

 private:
  void* data_ = nullptr;
};

// Random bytes whose floats of every width are finite: an exponent never has all its bits set.
std::vector<char> random_elements(size_t bytes, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<char> elements(bytes);
  for (auto& byte : elements) byte = static_cast<char>(generator() & 0xbb);
  return elements;
}

struct Problem {
  const NamedDType& type;
  int64_t n;             // elements of the output
  size_t offset;         // elements by which every pointer is moved off its alignment
  const Layout* layout;  // null: dense
};

// One kernel, on the device and as the CPU does it.
struct Kernel {
  const char* name;
  bool strided;
  void (*on_device)(const Problem&, const char* a, const char* b, char* out, Stream);
  void (*on_cpu)(const Problem&, const char* a, const char* b, char* out);
};

const Scalar value = Scalar::from(int64_t{3});

const Kernel kernels[] = {
    {"add", false,
     [](const Problem& p, const char* a, const char* b, char* out, Stream stream) {
       CHECK_CUDA(cuda_ext::add(p.type.dtype, a, b, out, p.n, stream));
     },
     [](const Problem& p, const char* a, const char* b, char* out) {
       cuda_ext::cpu::add(p.type.dtype, a, b, out, 0, p.n);
     }},
    {"fast_add", false,
     [](const Problem& p, const char* a, const char* b, char* out, Stream stream) {
       CHECK_CUDA(cuda_ext::fast_add(p.type.dtype, a, b, out, p.n, stream));
     },
     [](const Problem& p, const char* a, const char* b, char* out) {
       cuda_ext::cpu::add(p.type.dtype, a, b, out, 0, p.n);
     }},
    {"cust_add", false,
     [](const Problem& p, const char* a, const char*, char* out, Stream stream) {
       CHECK_CUDA(cuda_ext::cust_add(p.type.dtype, a, value, out, p.n, stream));
     },
     [](const Problem& p, const char* a, const char*, char* out) {
       cuda_ext::cpu::cust_add(p.type.dtype, a, value, out, 0, p.n);
     }},
    {"strided_add", true,
     [](const Problem& p, const char* a, const char* b, char* out, Stream stream) {
       CHECK_CUDA(cuda_ext::strided_add(p.type.dtype, a, b, out, *p.layout, stream));
     },
     [](const Problem& p, const char* a, const char* b, char* out) {
       cuda_ext::cpu::strided_add(p.type.dtype, a, b, out, *p.layout, 0, p.n);
     }},
    {"strided_cust_add", true,
     [](const Problem& p, const char* a, const char*, char* out, Stream stream) {
       CHECK_CUDA(cuda_ext::strided_cust_add(p.type.dtype, a, value, out, *p.layout, stream));
     },
     [](const Problem& p, const char* a, const char*, char* out) {
       cuda_ext::cpu::strided_cust_add(p.type.dtype, a, value, out, *p.layout, 0, p.n);
     }},
};

bool agrees(const Kernel& kernel, const Problem& p, Stream stream) {
  const size_t offset = p.offset * p.type.size, bytes = p.n * p.type.size;
  const auto a = random_elements(offset + bytes, 1), b = random_elements(offset + bytes, 2);
  std::vector<char> expected(bytes), got(bytes);
  kernel.on_cpu(p, a.data() + offset, b.data() + offset, expected.data());

  DeviceBuffer on_device_a(a.size()), on_device_b(b.size()), on_device_out(offset + bytes);
  CHECK_CUDA(cudaMemcpyAsync(on_device_a.get(), a.data(), a.size(), cudaMemcpyHostToDevice,
                             stream.handle));
  CHECK_CUDA(cudaMemcpyAsync(on_device_b.get(), b.data(), b.size(), cudaMemcpyHostToDevice,
                             stream.handle));
  CHECK_CUDA(cudaMemsetAsync(on_device_out.get(), 0xa5, offset + bytes, stream.handle));
  kernel.on_device(p, on_device_a.get() + offset, on_device_b.get() + offset,
                   on_device_out.get() + offset, stream);
  CHECK_CUDA(cudaMemcpyAsync(got.data(), on_device_out.get() + offset, bytes,
                             cudaMemcpyDeviceToHost, stream.handle));
  CHECK_CUDA(cudaStreamSynchronize(stream.handle));
  if (expected == got) return true;
  const auto at =
      std::mismatch(expected.begin(), expected.end(), got.begin()).first - expected.begin();
  std::printf("MISMATCH %s %s n=%lld offset=%zu: first at element %zu\n", kernel.name, p.type.name,
              static_cast<long long>(p.n), p.offset, static_cast<size_t>(at) / p.type.size);
  return false;
}

// A matrix read transposed plus a row that is broadcast.
Layout transposed_plus_row(int64_t rows, int64_t columns) {
  const int64_t sizes[] = {rows, columns}, strides[] = {1, rows};
  const int64_t row_sizes[] = {columns}, row_strides[] = {1};
  const View a{sizes, strides, 2}, b{row_sizes, row_strides, 1};
  Layout layout;
  cuda_ext::make_layout(a, &b, layout);
  return layout;
}

int check_all(Stream stream) {
  int checks = 0, mismatches = 0;
  const Layout layout = transposed_plus_row(123, 457);
  for (const auto& kernel : kernels) {
    for (const auto& type : dtypes) {
      if (kernel.strided) {
        mismatches += !agrees(kernel, {type, layout.numel, 0, &layout}, stream);
        ++checks;
        continue;
      }
      for (const int64_t n : {0, 1, 7, 255, 4096, 8191, 1 << 20, (1 << 20) + 13}) {
        for (const size_t offset : {0, 1, 3}) {
          mismatches += !agrees(kernel, {type, n, offset, nullptr}, stream);
          ++checks;
        }
      }
    }
  }
  std::printf("%d checks, %d mismatches\n", checks, mismatches);
  return mismatches;
}

// The median time of one launch, by CUDA events after a warm-up.
float median_ms(const Kernel& kernel, const Problem& p, const char* a, const char* b, char* out,
                Stream stream) {
  constexpr int warm_up = 5, repeats = 21;
  cudaEvent_t start, stop;
  CHECK_CUDA(cudaEventCreate(&start));
  CHECK_CUDA(cudaEventCreate(&stop));
  std::vector<float> times;
  for (int i = 0; i < warm_up + repeats; ++i) {
    CHECK_CUDA(cudaEventRecord(start, stream.handle));
    kernel.on_device(p, a, b, out, stream);
    CHECK_CUDA(cudaEventRecord(stop, stream.handle));
    CHECK_CUDA(cudaEventSynchronize(stop));
    float ms = 0;
    CHECK_CUDA(cudaEventElapsedTime(&ms, start, stop));
    if (i >= warm_up) times.push_back(ms);
  }
  CHECK_CUDA(cudaEventDestroy(start));
  CHECK_CUDA(cudaEventDestroy(stop));
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[repeats / 2];
}

void time_all(Stream stream) {
  constexpr size_t operand_bytes = size_t{1} << 30;  // far more than any cache holds
  const auto data = random_elements(operand_bytes, 3);
  DeviceBuffer a(operand_bytes), b(operand_bytes), out(operand_bytes);
  CHECK_CUDA(cudaMemcpy(a.get(), data.data(), operand_bytes, cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(b.get(), data.data(), operand_bytes, cudaMemcpyHostToDevice));
  std::printf("%-12s %-12s %12s %12s\n", "kernel", "dtype", "ms", "GB/s");
  for (const auto& kernel : kernels) {
    if (kernel.strided) continue;
    for (const auto& type : dtypes) {
      const Problem problem{type, static_cast<int64_t>(operand_bytes / type.size), 0, nullptr};
      const float ms = median_ms(kernel, problem, a.get(), b.get(), out.get(), stream);
      const int operands = std::strcmp(kernel.name, "cust_add") == 0 ? 2 : 3;
      std::printf("%-12s %-12s %12.4f %12.0f\n", kernel.name, type.name, ms,
                  operands * operand_bytes / ms / 1e6);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool check_only = argc == 2 && std::strcmp(argv[1], "--check") == 0;
  if (argc > 1 && !check_only) {
    std::fprintf(stderr, "usage: %s [--check]\n", argv[0]);
    return 2;
  }
  Stream stream;
  CHECK_CUDA(cudaGetDevice(&stream.device));
  CHECK_CUDA(cudaStreamCreateWithFlags(&stream.handle, cudaStreamNonBlocking));
  const int mismatches = check_all(stream);
  if (!mismatches && !check_only) time_all(stream);
  CHECK_CUDA(cudaStreamDestroy(stream.handle));
  return mismatches ? 1 : 0;
}
