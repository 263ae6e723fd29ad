#include "weft/cpu/machine_rates.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <string>

#include "weft/base/memory.h"
#include "weft/base/parallel.h"
#include "weft/cpu/native/rates/multiply_chains.h"

namespace weft {

namespace {

constexpr int kRepetitions = 7;
constexpr double kRepetitionSeconds = 4e-3;
constexpr int64_t kProductSize = 1024;
constexpr int64_t kSmallestMemoryTest = 128 << 20, kLargestMemoryTest = 1 << 30;  // bytes, both buffers

double seconds_of(const auto& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Of work that can be done `count` times in a row: the least seconds per time.
double least_seconds(const auto& work) {
  int64_t count = 1;
  double seconds = seconds_of([&] { work(count); });
  while (seconds < kRepetitionSeconds) {
    count *= 2;
    seconds = seconds_of([&] { work(count); });
  }
  double least = seconds / static_cast<double>(count);
  for (int repetition = 1; repetition < kRepetitions; ++repetition)
    least = std::min(least, seconds_of([&] { work(count); }) / static_cast<double>(count));
  return least;
}

ArithmeticRate rate_of_chains(DType dtype, int threads) {
  const native::MultiplyChains chains = native::multiply_chains(dtype, detect_isa());
  if (!chains.run) return {};
  std::atomic<float> sink = 0;
  const double seconds = least_seconds(
      [&](int64_t count) { parallel_run(threads, threads, [&](int, int) { sink = chains.run(1000 * count); }); });
  return {1000.0 * threads * static_cast<double>(chains.flops_per_round) / seconds, chains.unit};
}

/// Of one call.
double seconds_of_product(DType dtype, int64_t size, const CpuBackend& backend, const OpDef& matmul) {
  const TensorType type{dtype, Shape({size, size}), {}};
  const NodeSignature node{.op = &matmul,
                           .name = "product",
                           .inputs = {type, type},
                           .outputs = {type},
                           .attributes = complete_attributes(matmul, "product", {})};
  const std::unique_ptr<Kernel> kernel = backend.make_kernel(node);
  const Tensor a(type), b(type);
  Tensor product(type);
  const auto workspace = allocate_aligned(kernel->workspace_bytes());
  const void* inputs[] = {a.data(), b.data()};
  void* outputs[] = {product.data()};
  return least_seconds([&](int64_t count) {
    for (int64_t call = 0; call < count; ++call) kernel->run({inputs, outputs, workspace.get()});
  });
}

ArithmeticRate rate_of_product(DType dtype, const CpuBackend& backend, const OpDef& matmul) {
  const double seconds = seconds_of_product(dtype, kProductSize, backend, matmul);
  return {2.0 * kProductSize * kProductSize * kProductSize / seconds, "a matrix product of 1024 x 1024 x 1024"};
}

ArithmeticRate faster(const ArithmeticRate& one, const ArithmeticRate& other) {
  return one.flops_per_second >= other.flops_per_second ? one : other;
}

uint64_t sum_of(const std::byte* begin, int64_t bytes) {
  constexpr int64_t kLanes = 16;
  uint64_t sums[kLanes] = {};
  for (int64_t offset = 0; offset + 8 * kLanes <= bytes; offset += 8 * kLanes) {
    uint64_t words[kLanes];
    std::memcpy(words, begin + offset, sizeof words);
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += words[lane];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

/// Bytes per second of all threads, each with its part of two buffers of so many bytes together.
double rate_of_memory(std::byte* memory, int64_t bytes, int threads) {
  const int64_t half = bytes / threads / 2 / 4096 * 4096;
  std::atomic<uint64_t> sink = 0;
  const double copy_seconds = least_seconds([&](int64_t count) {
    parallel_run(threads, threads, [&](int part, int) {
      std::byte* begin = memory + 2 * half * part;
      for (int64_t call = 0; call < count; ++call) std::memcpy(begin + half, begin, static_cast<size_t>(half));
    });
  });
  const double read_seconds = least_seconds([&](int64_t count) {
    parallel_run(threads, threads, [&](int part, int) {
      for (int64_t call = 0; call < count; ++call) sink = sum_of(memory + 2 * half * part, 2 * half);
    });
  });
  return 2.0 * static_cast<double>(half) * threads / std::min(copy_seconds, read_seconds);
}

/// Of all caches of a level that so many threads use, each on a core of its own; 0 where the system does not say. What
/// sysconf() tells of L3 is many times too large on some processors.
int64_t cache_bytes(int level, int threads) {
  for (int index = 0;; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    int found = 0;
    int64_t kilobytes = 0;
    std::string sharing;  // a bit per core, "00000000,00000003"
    if (!(std::ifstream(folder + "level") >> found)) return 0;
    if (found != level || !(std::ifstream(folder + "size") >> kilobytes)) continue;
    if (!(std::ifstream(folder + "shared_cpu_map") >> sharing)) return 0;
    int cores = 0;
    for (const char digit : sharing)
      if (digit != ',') cores += std::popcount(static_cast<unsigned>(std::stoi(std::string(1, digit), nullptr, 16)));
    return kilobytes * 1024 * ((threads + std::max(1, cores) - 1) / std::max(1, cores));
  }
}

std::vector<MemoryRate> rates_of_memory(int threads) {
  const int64_t l2 = cache_bytes(2, threads), l3 = cache_bytes(3, threads);
  const int64_t affordable = available_memory_bytes() / 4;
  const int64_t large =
      std::min(affordable, std::clamp<int64_t>(2 * (l2 + l3), kSmallestMemoryTest, kLargestMemoryTest));
  const auto buffer = allocate_aligned(large);
  std::memset(buffer.get(), 1, static_cast<size_t>(large));  // pages never written to would all be one page of zeros
  std::vector<MemoryRate> rates;
  const auto add = [&](const char* level, int64_t capacity, int64_t bytes) {
    const double rate = rate_of_memory(buffer.get(), bytes, threads);
    // A level further away is never faster: what says so was disturbed.
    for (MemoryRate& nearer : rates) nearer.bytes_per_second = std::max(nearer.bytes_per_second, rate);
    rates.push_back({level, capacity, rate});
  };
  if (l2 > 0 && l2 / 2 < large) add("L2", l2, l2 / 2);
  if (l3 > l2 && l3 / 2 < large) add("L3", l3, l3 / 2);
  add("memory", std::numeric_limits<int64_t>::max(), large);
  return rates;
}

}  // namespace

MachineRates measure_machine(const CpuBackend& backend, const OpDef& matmul) {
  MachineRates rates;
  rates.threads = backend.threads();
  rates.measuring_seconds = seconds_of([&] {
    rates.f32 = faster(rate_of_chains(DType::f32, rates.threads), rate_of_product(DType::f32, backend, matmul));
    rates.bf16 = rates.f32;
    if (backend.computes_fast(DType::bf16))
      rates.bf16 = faster(rate_of_chains(DType::bf16, rates.threads), rate_of_product(DType::bf16, backend, matmul));
    rates.memory = rates_of_memory(rates.threads);
    rates.call_seconds = seconds_of_product(DType::f32, 1, backend, matmul);
  });
  return rates;
}

}  // namespace weft
