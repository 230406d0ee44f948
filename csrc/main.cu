// The standalone program: checks every op, dtype and layout against the CPU's result, then times
// the elementwise ops. No torch.
//
//   standalone            check and time
//   standalone --check    check only
//
// Exit status: 0 success, 1 a mismatch, 2 a CUDA error (such as no usable GPU) or a wrong argument.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "elementwise_ops.h"
#include "opwright/cuda_error.h"
#include "rms_norm.h"

namespace {

using namespace opwright;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, explain(error).c_str());
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
  DeviceBuffer(DeviceBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  char* get() const { return static_cast<char*>(data_); }

 private:
  void* data_ = nullptr;
};

// Random bytes that are finite floats of every width: no exponent has all its bits set.
std::vector<char> random_elements(size_t bytes, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<char> elements(bytes);
  for (auto& byte : elements) byte = static_cast<char>(generator() & 0xbb);
  return elements;
}

int checks = 0, mismatches = 0;

// --- elementwise ops ----------------------------------------------

double as_number(DType dtype, const char* element) {
  const auto as = [&](auto value) {
    std::memcpy(&value, element, sizeof value);
    return static_cast<double>(value);
  };
  switch (dtype) {
    case DType::float16:
      return as(__half{});
    case DType::bfloat16:
      return as(__nv_bfloat16{});
    case DType::float32:
      return as(float{});
    default:
      return as(double{});
  }
}

std::vector<char> random_numbers(DType dtype, int64_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-2, 2);
  const size_t size = element_sizes[static_cast<int>(dtype)];
  std::vector<char> elements(n * size);
  for (int64_t i = 0; i < n; ++i) {
    const auto put = [&](auto value) { std::memcpy(&elements[i * size], &value, sizeof value); };
    const float number = uniform(generator);
    switch (dtype) {
      case DType::float16:
        put(__float2half(number));
        break;
      case DType::bfloat16:
        put(__float2bfloat16(number));
        break;
      case DType::float32:
        put(number);
        break;
      default:
        put(static_cast<double>(number));
    }
  }
  return elements;
}

// Whether every difference is small relative to 1 or to the expected number, a sum of `terms`.
bool are_close(DType dtype, const std::vector<char>& expected, const std::vector<char>& got,
               int64_t terms = 1) {
  const size_t size = element_sizes[static_cast<int>(dtype)];
  const double tolerance = dtype == DType::float64   ? 1e-11
                           : dtype == DType::float32 ? 1e-5
                           : dtype == DType::float16 ? 2e-3
                                                     : 2e-2;
  for (size_t at = 0; at < expected.size(); at += size) {
    if (std::memcmp(&expected[at], &got[at], size) == 0) continue;
    const double wanted = as_number(dtype, &expected[at]), is = as_number(dtype, &got[at]);
    if (!(std::abs(is - wanted) <= tolerance * std::sqrt(terms) * std::max(1.0, std::abs(wanted))))
      return false;
  }
  return true;
}

// The layout of the inputs; an op uses as many as it has.
struct Case {
  const char* name;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides[max_inputs];
  size_t offset = 0;  // the elements by which every pointer is moved off its alignment
};

std::vector<Case> make_cases() {
  std::vector<Case> cases;
  for (const int64_t n : {1, 7, 255, 4096, 8191, 1 << 20, (1 << 20) + 13}) {
    for (const size_t offset : {0, 1, 3}) cases.push_back({"dense", {n}, {{1}, {1}, {1}}, offset});
  }
  for (const int64_t n : {256, 457}) {
    for (const size_t offset : {0, 1}) {
      cases.push_back({"row", {123, n}, {{n, 1}, {0, 1}, {n, 1}}, offset});
      cases.push_back({"column", {123, n}, {{n, 1}, {1, 0}, {1, 0}}, offset});
      cases.push_back({"scalar", {123, n}, {{n, 1}, {0, 0}, {0, 0}}, offset});
      cases.push_back({"outer", {123, n}, {{1, 0}, {0, 1}, {1, 0}}, offset});
      cases.push_back({"rows with gaps", {123, n}, {{512, 1}, {600, 1}, {512, 1}}, offset});
      cases.push_back({"3 dimensions", {5, 7, n}, {{9 * n, n, 1}, {0, n, 1}, {n, 0, 1}}, offset});
      cases.push_back({"every second", {123, n}, {{2 * n, 2}, {2 * n, 2}, {2 * n, 2}}, offset});
      cases.push_back({"one transposed", {123, n}, {{n, 1}, {1, 123}, {n, 1}}, offset});
      cases.push_back({"the first transposed", {123, n}, {{1, 123}, {n, 1}, {0, 1}}, offset});
      cases.push_back(
          {"batch transposed", {5, 67, n}, {{67 * n, n, 1}, {67 * n, 1, 67}, {0, n, 1}}, offset});
      cases.push_back(
          {"ends swapped", {67, 5, n}, {{5 * n, n, 1}, {1, 67, 67 * 5}, {n, 0, 1}}, offset});
    }
  }
  return cases;
}

// Whether CPU and GPU give the same bits; the last bit of an exponential differs.
template <typename Op>
constexpr bool is_exact =
    numbers_of<Op> > 0 || std::is_same_v<Op, my_add> || std::is_same_v<Op, my_fast_add>;

template <typename Op>
bool agrees(DType dtype, const Case& which, Stream stream) {
  constexpr int inputs = inputs_of<Op>, outputs = outputs_of<Op>;
  const size_t size = element_sizes[static_cast<int>(dtype)], offset = which.offset * size;
  View views[inputs];
  std::vector<char> on_host[inputs];
  std::vector<DeviceBuffer> on_device;
  on_device.reserve(inputs);
  Operands host, device;
  for (int i = 0; i < inputs; ++i) {
    views[i] = {which.sizes.data(), which.strides[i].data(), static_cast<int>(which.sizes.size())};
    int64_t last = 0;
    for (size_t d = 0; d < which.sizes.size(); ++d)
      last += (which.sizes[d] - 1) * which.strides[i][d];
    on_host[i] = is_exact<Op> ? random_elements(offset + (last + 1) * size, i + 1)
                              : random_numbers(dtype, which.offset + last + 1, i + 1);
    on_device.emplace_back(on_host[i].size());
    CHECK_CUDA(cudaMemcpyAsync(on_device[i].get(), on_host[i].data(), on_host[i].size(),
                               cudaMemcpyHostToDevice, stream.handle));
    host.in[i] = on_host[i].data() + offset;
    device.in[i] = on_device[i].get() + offset;
  }
  Layout layout;
  if (!make_layout(views, inputs, layout).empty()) std::abort();
  const size_t bytes = layout.numel * size;
  std::vector<char> expected[max_outputs], got(bytes);
  std::vector<DeviceBuffer> results;
  results.reserve(outputs);
  for (int o = 0; o < outputs; ++o) {
    expected[o].resize(bytes);
    host.out[o] = expected[o].data();
    results.emplace_back(offset + bytes);
    CHECK_CUDA(cudaMemsetAsync(results[o].get(), 0xa5, offset + bytes, stream.handle));
    device.out[o] = results[o].get() + offset;
  }
  const std::vector<Scalar> numbers(numbers_of<Op> + 1, Scalar::from(int64_t{3}));
  on_cpu(Op{}, dtype, host, numbers.data(), layout, 0, layout.numel);
  CHECK_CUDA(on_cuda(Op{}, dtype, device, numbers.data(), layout, stream));
  int wrong = 0;
  for (int o = 0; o < outputs; ++o) {
    CHECK_CUDA(
        cudaMemcpyAsync(got.data(), device.out[o], bytes, cudaMemcpyDeviceToHost, stream.handle));
    CHECK_CUDA(cudaStreamSynchronize(stream.handle));
    wrong += is_exact<Op> ? expected[o] != got : !are_close(dtype, expected[o], got);
  }
  if (!wrong) return true;
  std::printf("MISMATCH %s %s %s n=%lld offset=%zu\n", Op::schema,
              dtype_names[static_cast<int>(dtype)], which.name,
              static_cast<long long>(layout.numel), which.offset);
  return false;
}

template <typename Op>
void check_op(const std::vector<Case>& cases, Stream stream) {
  for (int d = 0; d < dtype_count; ++d) {
    if (!Op::dtypes.has(static_cast<DType>(d))) continue;
    for (const auto& which : cases) {
      mismatches += !agrees<Op>(static_cast<DType>(d), which, stream);
      ++checks;
    }
  }
}

template <typename... Op>
void check_elementwise(OpList<Op...>, Stream stream) {
  const auto cases = make_cases();
  (check_op<Op>(cases, stream), ...);
}

// --- rms_norm -----------------------------------------------------

// Host and device memory with the same contents.
struct Twin {
  std::vector<char> host;
  DeviceBuffer device;

  explicit Twin(std::vector<char> elements) : host(std::move(elements)), device(host.size()) {
    CHECK_CUDA(cudaMemcpy(device.get(), host.data(), host.size(), cudaMemcpyHostToDevice));
  }
  explicit Twin(size_t bytes) : Twin(std::vector<char>(bytes, 0x7f)) {}

  std::vector<char> from_device() const {
    std::vector<char> bytes(host.size());
    CHECK_CUDA(cudaMemcpy(bytes.data(), device.get(), bytes.size(), cudaMemcpyDeviceToHost));
    return bytes;
  }
};

// Rows of `size` elements with gaps of `gap` elements, moved off their alignment by `offset`.
struct RowCase {
  int64_t rows, size, gap = 0;
  size_t offset = 0;
  bool wide_weight = false, adds = false;  // adds a residual forward and a gradient backward
};

// Compares forward and backward; skips cases whose additional tensor the kernels do not add.
void check_rms_norm(DType dtype, const RowCase& which, Stream stream) {
  const auto [rows, size, gap, offset, wide_weight, adds] = which;
  const size_t element = element_sizes[static_cast<int>(dtype)];
  const DType number = dtype == DType::float64 ? DType::float64 : DType::float32;
  const DType weight_dtype = wide_weight ? number : dtype;
  const size_t number_size = element_sizes[static_cast<int>(number)];
  const int64_t row_sizes[] = {rows}, row_strides[] = {size + gap};
  const View view{row_sizes, row_strides, 1}, views[] = {view, view};
  const size_t in = rows * (size + gap) + offset, results = rows * size + offset;
  const size_t weight_bytes = size * element_sizes[static_cast<int>(weight_dtype)];
  const size_t moved = offset * element;
  Twin x(random_numbers(dtype, in, 1)), grad(random_numbers(dtype, in, 2));
  Twin weight(random_numbers(weight_dtype, size, 3)), rstd(rows * number_size);
  Twin out(results * element), grad_x(results * element), grad_weight(weight_bytes);
  Twin added(random_numbers(dtype, results, 4)), sum(results * element);

  RowProblem forward{dtype, wide_weight, size, contiguous_layout(views, 1)};
  forward.in[0] = x.host.data() + moved;
  forward.weight = weight.host.data();
  forward.out[0] = out.host.data() + moved;
  forward.row_out = rstd.host.data();
  forward.number = 1e-5;
  forward.weight_offset = weight_dtype == number ? 0.5 : 0;
  if (adds) forward.added = added.host.data() + moved, forward.sum = sum.host.data() + moved;
  forward_on_cpu(rms_norm{}, forward, 0, rows);
  forward.in[0] = x.device.get() + moved;
  forward.weight = weight.device.get();
  forward.out[0] = out.device.get() + moved;
  forward.row_out = rstd.device.get();
  if (adds) forward.added = added.device.get() + moved, forward.sum = sum.device.get() + moved;
  if (adds && !adds_on_cuda(rms_norm{}, forward, /*backward=*/false)) return;
  CHECK_CUDA(forward_on_cuda(rms_norm{}, forward, stream));

  std::vector<double> partial(cpu::column_parts * size);
  RowProblem backward{dtype, wide_weight, size, contiguous_layout(views, 2)};
  backward.in[0] = grad.host.data() + moved;
  backward.in[1] = x.host.data() + moved;
  backward.weight = weight.host.data();
  backward.given = rstd.host.data();
  backward.out[0] = grad_x.host.data() + moved;
  backward.column_out = grad_weight.host.data();
  backward.weight_offset = forward.weight_offset;
  if (adds) backward.added = added.host.data() + moved;
  backward.partial = partial.data();
  for (int64_t part = 0; part < cpu::column_parts; ++part)
    backward_on_cpu(rms_norm{}, backward, part);
  sum_on_cpu(rms_norm{}, backward, 0, size);
  backward.in[0] = grad.device.get() + moved;
  backward.in[1] = x.device.get() + moved;
  backward.weight = weight.device.get();
  backward.given = rstd.device.get();
  backward.out[0] = grad_x.device.get() + moved;
  backward.column_out = grad_weight.device.get();
  if (adds) backward.added = added.device.get() + moved;
  if (adds && !adds_on_cuda(rms_norm{}, backward, /*backward=*/true)) return;
  DeviceBuffer partial_on_device(partials_on_cuda(rms_norm{}, backward, stream) * size *
                                 number_size);
  backward.partial = partial_on_device.get();
  CHECK_CUDA(backward_on_cuda(rms_norm{}, backward, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream.handle));

  ++checks;
  if (are_close(dtype, out.host, out.from_device()) &&
      are_close(number, rstd.host, rstd.from_device()) && sum.host == sum.from_device() &&
      are_close(dtype, grad_x.host, grad_x.from_device()) &&
      are_close(weight_dtype, grad_weight.host, grad_weight.from_device(), rows))
    return;
  ++mismatches;
  std::printf("MISMATCH rms_norm %s %lld x %lld, gap %lld, offset %zu%s%s\n",
              dtype_names[static_cast<int>(dtype)], static_cast<long long>(rows),
              static_cast<long long>(size), static_cast<long long>(gap), offset,
              wide_weight ? ", wide weight" : "", adds ? ", added" : "");
}

void check_rms_norm(Stream stream) {
  std::vector<RowCase> cases = {{2000, 512}, {2000, 130, 0, 1}, {0, 64}, {3, 140000}};
  // Several rows for each cluster.
  for (const int64_t size : {18432, 20484}) cases.push_back({200, size});
  for (const int64_t size : {1, 7, 64, 128, 200, 256, 1000, 1024, 2048, 4095, 4096, 4097, 8192,
                             16384, 20000, 40001, 70000}) {
    for (const int64_t gap : {0, 1, 16}) {
      for (const bool wide_weight : {false, true}) {
        for (const size_t offset : {0, 1}) {
          cases.push_back({size > 10000 ? 5 : 37, size, gap, offset, wide_weight});
          cases.push_back({size > 10000 ? 5 : 37, size, gap, offset, wide_weight, true});
        }
      }
    }
  }
  for (int d = 0; d < dtype_count; ++d) {
    if (!rms_norm::dtypes.has(static_cast<DType>(d))) continue;
    for (const auto& which : cases) check_rms_norm(static_cast<DType>(d), which, stream);
  }
}

// --- times --------------------------------------------------------

// The median time of one launch, measured with CUDA events after a warm-up.
template <typename Launch>
float median_ms(const Launch& launch, Stream stream) {
  constexpr int warm_up = 5, repeats = 21;
  cudaEvent_t start, stop;
  CHECK_CUDA(cudaEventCreate(&start));
  CHECK_CUDA(cudaEventCreate(&stop));
  std::vector<float> times;
  for (int i = 0; i < warm_up + repeats; ++i) {
    CHECK_CUDA(cudaEventRecord(start, stream.handle));
    launch();
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

constexpr size_t operand_bytes = size_t{1} << 30;  // far more than any cache holds

template <typename Op>
void time_op(const Operands& operands, Stream stream) {
  const std::string schema = Op::schema;
  const std::vector<Scalar> numbers(numbers_of<Op> + 1, Scalar::from(int64_t{3}));
  for (int d = 0; d < dtype_count; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (!Op::dtypes.has(dtype)) continue;
    const Layout layout =
        dense_layout(inputs_of<Op>, static_cast<int64_t>(operand_bytes / element_sizes[d]));
    const float ms = median_ms(
        [&] { CHECK_CUDA(on_cuda(Op{}, dtype, operands, numbers.data(), layout, stream)); },
        stream);
    std::printf("%-18s %-12s %12.4f %12.0f\n", schema.substr(0, schema.find('(')).c_str(),
                dtype_names[d], ms, (inputs_of<Op> + outputs_of<Op>)*operand_bytes / ms / 1e6);
  }
}

template <typename... Op>
void time_elementwise(OpList<Op...>, Stream stream) {
  const auto data = random_elements(operand_bytes, 3);
  DeviceBuffer in(operand_bytes), more(operand_bytes), most(operand_bytes);
  DeviceBuffer out(operand_bytes), second(operand_bytes);
  CHECK_CUDA(cudaMemcpy(in.get(), data.data(), operand_bytes, cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(more.get(), data.data(), operand_bytes, cudaMemcpyHostToDevice));
  const Operands operands{{in.get(), more.get(), most.get()}, {out.get(), second.get()}};
  std::printf("%-18s %-12s %12s %12s\n", "op", "dtype", "ms", "GB/s");
  (time_op<Op>(operands, stream), ...);
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
  check_elementwise(ElementwiseOps{}, stream);
  check_rms_norm(stream);
  std::printf("%d checks, %d mismatches\n", checks, mismatches);
  if (!mismatches && !check_only) time_elementwise(ElementwiseOps{}, stream);
  CHECK_CUDA(cudaStreamDestroy(stream.handle));
  return mismatches ? 1 : 0;
}
