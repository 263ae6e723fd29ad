// How far the native kernels are from the speed of memory: times the nodes of kernel_rows.h in f32 and in bf16 and
// prints GB/s beside a copy and a triad that are measured in the same run.
// With `pairs`: the native kernels beside oneDNN's, for every op that has both (kernel_pairs.h).
// Build: cmake -DWEFT_BENCHMARKS=ON; run: build/benchmark_kernels [threads [OP]], of the ops whose names begin with OP,
// or build/benchmark_kernels pairs | pairs-each [threads]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <vector>

#include "benchmarks/kernel_pairs.h"
#include "benchmarks/kernel_rows.h"
#include "weft/base/isa.h"
#include "weft/base/parallel.h"
#include "weft/device/kernel.h"
#include "weft/graph/graph.h"
#include "weft/tensor/element.h"

namespace {

using namespace weft;
using benchmarks::Row;

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
  std::unique_ptr<Kernel> kernel;
  if (!table.candidates(row.op).empty())
    kernel = table.candidates(row.op).front().make(node, KernelOptions{threads}, why_not);
  const KernelTable all = standard_kernels();  // for changes of layout, which are not native
  for (const KernelCandidate& candidate : all.candidates(row.op)) {
    if (kernel != nullptr) break;
    kernel = candidate.make(node, KernelOptions{threads}, why_not);
  }
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
    for (int64_t i = 0; is_floating(type.dtype) && i < type.bytes() / unpacked_size(type.dtype); ++i)
      store_element(type.dtype, inputs.back().data(), i,
                    static_cast<double>((i * 2654435761u) % 1000) * 2e-3 - 1.0 + 1e-4);
    from.push_back(inputs.back().data());
  }
  for (size_t i = 0; i < row.outputs.size(); ++i) {
    if (!row.in_place_of.empty()) {
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

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  const bool pairs = first == "pairs" || first == "pairs-each";
  const char* given = argc > (pairs ? 2 : 1) ? argv[pairs ? 2 : 1] : nullptr;
  const int threads = given ? std::atoi(given) : omp_get_num_procs();
  if (pairs) {
    benchmarks::compare_kernels(threads, first == "pairs-each");
    return 0;
  }
  const std::string only = argc > 2 ? argv[2] : "";
  std::vector<char> sweep(96 << 20);
  fmt::print("{} threads, {}; bytes count every operand once\n", threads, name_of(detect_isa()));
  for (const bool cold : {true, false}) {
    fmt::print("-- {} caches\n", cold ? "cold" : "warm");
    measure_memory(threads, cold, sweep);
    for (const DType images : {DType::f32, DType::bf16})
      for (const Row& row : benchmarks::kernel_rows(images)) {
        if (!row.op.starts_with(only)) continue;
        std::string kernel;
        const double seconds = time_kernel(row, threads, cold, sweep, kernel);
        std::string label =
            fmt::format("{} {} x{}", row.op, to_string(row.inputs[0]), row.inputs.size() + row.outputs.size());
        if (row.inputs[0].layout != row.outputs[0].layout) label += " to @" + to_string(row.outputs[0].layout);
        if (!kernel.starts_with("native")) label += " " + kernel;
        if (seconds == 0)
          fmt::print("{:<58} {}\n", label, kernel);
        else
          fmt::print("{:<58} {:>8.3f} ms {:>7.1f} GB/s\n", label, seconds * 1e3, operand_bytes(row) / seconds / 1e9);
      }
    measure_memory(threads, cold, sweep);
  }
  return 0;
}
