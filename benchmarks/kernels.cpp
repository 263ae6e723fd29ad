// How far the native kernels are from the speed of memory: times batch norm, fused add + relu, pooling and SGD on
// tensors of ResNet's sizes and prints GB/s beside a copy and a triad that are measured in the same run.
// With `pairs`: the native kernels beside oneDNN's, for every op that has both (kernel_pairs.h).
// Build: cmake -DWEFT_BENCHMARKS=ON; run: build/benchmark_kernels [pairs | pairs-each] [threads]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <vector>

#include "benchmarks/kernel_pairs.h"
#include "weft/base/parallel.h"
#include "weft/graph/graph.h"
#include "weft/runtime/kernel.h"
#include "weft/runtime/native/isa.h"

namespace {

using namespace weft;

/// Seconds of the fastest of many calls: what other programs take away is not the kernel's. Each call runs after a
/// sweep over memory that empties the caches where `cold`.
double fastest_seconds(const std::function<void()>& body, bool cold, std::vector<char>& sweep) {
  double fastest = 1e9;
  body();
  const auto begin = std::chrono::steady_clock::now();
  const auto since = [](auto start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (int sample = 0; sample < 50 && (sample < 9 || since(begin) < 0.5); ++sample) {
    if (cold)
      for (size_t at = 0; at < sweep.size(); at += 64) ++sweep[at];
    const auto start = std::chrono::steady_clock::now();
    body();
    fastest = std::min(fastest, since(start));
  }
  return fastest;
}

struct Row {
  std::string op;
  std::vector<TensorType> inputs, outputs;
  Attributes attributes;
  bool in_place = false;  // output i is input in_place_of[i]
  std::vector<size_t> in_place_of;
};

/// Bytes that have to cross the memory bus at least: every operand once.
double operand_bytes(const Row& row) {
  double bytes = 0;
  for (const auto& type : row.inputs) bytes += static_cast<double>(type.bytes());
  for (const auto& type : row.outputs) bytes += static_cast<double>(type.bytes());
  return bytes;
}

double time_kernel(const Row& row, int threads, bool cold, std::vector<char>& sweep, std::string& kernel_name) {
  OpDef op;
  op.name = row.op;
  const NodeSignature node{&op, "benchmark", row.inputs, row.outputs, row.attributes};
  KernelTable table;
  add_native_kernels(table);
  std::string why_not;
  const auto kernel = table.candidates(row.op).front().make(node, KernelOptions{threads}, why_not);
  if (kernel == nullptr) {
    kernel_name = "declined: " + why_not;
    return 0;
  }
  kernel_name = kernel->name();
  std::vector<Tensor> inputs, outputs;
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const auto& type : row.inputs) {
    inputs.emplace_back(type);
    if (type.dtype == DType::f32)
      for (int64_t i = 0; i < type.bytes() / 4; ++i)
        inputs.back().data_as<float>()[i] = static_cast<float>((i * 2654435761u) % 1000) * 2e-3f - 1.0f + 1e-4f;
    from.push_back(inputs.back().data());
  }
  for (size_t i = 0; i < row.outputs.size(); ++i) {
    if (row.in_place) {
      to.push_back(inputs[row.in_place_of[i]].data());
      continue;
    }
    outputs.emplace_back(row.outputs[i]);
    to.push_back(outputs.back().data());
  }
  const auto workspace = allocate_aligned(std::max<int64_t>(64, kernel->workspace_bytes()));
  return fastest_seconds([&] { kernel->run({from, to, workspace.get()}); }, cold, sweep);
}

void measure_memory(int threads, bool cold, std::vector<char>& sweep) {
  const int64_t count = 4 << 20;  // floats: 16 MB, an activation of ResNet-50
  std::vector<float> a(static_cast<size_t>(count), 1.0f), b(a), c(a);
  const double copy = fastest_seconds(
      [&] {
        parallel_for(threads, count, 1, [&](int64_t begin, int64_t end) {
          std::copy(a.begin() + begin, a.begin() + end, b.begin() + begin);
        });
      },
      cold, sweep);
  const double triad = fastest_seconds(
      [&] {
        parallel_for(threads, count, 1, [&](int64_t begin, int64_t end) {
          const float *x = a.data(), *y = b.data();
          float* z = c.data();
#pragma omp simd
          for (int64_t i = begin; i < end; ++i) z[i] = x[i] + 3.0f * y[i];
        });
      },
      cold, sweep);
  fmt::print("{:<58} {:>8.3f} ms {:>7.1f} GB/s\n", "memory: copy of 16 MB", copy * 1e3,
             2.0 * 4 * static_cast<double>(count) / copy / 1e9);
  fmt::print("{:<58} {:>8.3f} ms {:>7.1f} GB/s\n", "memory: triad of 16 MB", triad * 1e3,
             3.0 * 4 * static_cast<double>(count) / triad / 1e9);
}

TensorType image(int64_t n, int64_t c, int64_t size, const std::string& layout) {
  return {DType::f32, {n, c, size, size}, parse_layout(layout, 4)};
}

std::vector<Row> rows() {
  std::vector<Row> list;
  const TensorType scalar{DType::f32, {}, {}};
  using Pair = std::vector<int64_t>;
  for (const std::string layout : {"aBcd16b", "acdb", ""})
    for (const auto& [channels, size] : {std::pair<int64_t, int64_t>{64, 32}, {256, 32}, {512, 16}, {2048, 4}}) {
      const TensorType x = image(16, channels, size, layout), channel{DType::f32, {channels}, {}};
      const Attributes relu{{"epsilon", 1e-5}, {"activation", std::string("relu")}};
      Attributes relu_backward = relu, relu_residual = relu;
      relu_backward.set("residual_gradient", false);
      relu_residual.set("residual_gradient", true);
      list.push_back({"batch_norm", {x, channel, channel}, {x, channel, channel}, relu, false, {}});
      list.push_back({"batch_norm", {x, channel, channel, x}, {x, channel, channel}, relu, false, {}});
      list.push_back({"batch_norm_backward",
                      {x, x, channel, channel, channel, channel},
                      {x, channel, channel},
                      relu_backward,
                      false,
                      {}});
      list.push_back({"batch_norm_backward",
                      {x, x, channel, channel, channel, channel, x},
                      {x, channel, channel, x},
                      relu_residual,
                      false,
                      {}});
    }
  const TensorType x = image(16, 256, 32, "aBcd16b");
  list.push_back({"fused_elementwise",
                  {x, x},
                  {x},
                  {{"program", std::string("add(0,1);relu(2)")}, {"results", Pair{3}}},
                  false,
                  {}});
  list.push_back({"gelu", {x}, {x}, {{"approximate", false}}, false, {}});
  const Attributes pool{{"kernel", Pair{3, 3}}, {"stride", Pair{2, 2}}, {"padding", Pair{1, 1}}};
  const TensorType large = image(16, 64, 64, "aBcd16b"), small = image(16, 64, 32, "aBcd16b");
  list.push_back({"max_pool2d", {large}, {small}, pool, false, {}});
  list.push_back({"max_pool2d_backward", {small, large, small}, {large}, pool, false, {}});
  const TensorType weight{DType::f32, {512, 512, 3, 3}, parse_layout("ABcd16b16a", 4)};
  list.push_back({"sgd_update",
                  {weight, weight, weight, scalar},
                  {weight, weight},
                  {{"momentum", 0.9}, {"nesterov", false}, {"weight_decay", 1e-4}},
                  true,
                  {0, 2}});
  return list;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  const bool pairs = first == "pairs" || first == "pairs-each";
  const char* given = argc > (pairs ? 2 : 1) ? argv[pairs ? 2 : 1] : nullptr;
  const int threads = given ? std::atoi(given) : omp_get_num_procs();
  if (pairs) {
    weft::benchmarks::compare_kernels(threads, first == "pairs-each");
    return 0;
  }
  std::vector<char> sweep(96 << 20);
  fmt::print("{} threads, {}; bytes count every operand once\n", threads, name_of(native::detect_isa()));
  for (const bool cold : {true, false}) {
    fmt::print("-- {} caches\n", cold ? "cold" : "warm");
    measure_memory(threads, cold, sweep);
    for (const Row& row : rows()) {
      std::string kernel;
      const double seconds = time_kernel(row, threads, cold, sweep, kernel);
      const std::string label =
          fmt::format("{} {} x{}", row.op, to_string(row.inputs[0]), row.inputs.size() + row.outputs.size());
      if (seconds == 0)
        fmt::print("{:<58} {}\n", label, kernel);
      else
        fmt::print("{:<58} {:>8.3f} ms {:>7.1f} GB/s\n", label, seconds * 1e3, operand_bytes(row) / seconds / 1e9);
    }
    measure_memory(threads, cold, sweep);
  }
  return 0;
}
