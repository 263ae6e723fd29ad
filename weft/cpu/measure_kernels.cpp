#include "weft/cpu/measure_kernels.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "weft/base/exception.h"
#include "weft/tensor/element.h"

namespace weft {

namespace {

constexpr int kFewestRounds = 4, kMostRounds = 20;
constexpr double kFarBehind = 4;  // times the fastest
constexpr double kAgreeing =
    1.05;  // the second fastest call over the fastest: what other programs take away is not in it

/// Numbers between 0.5 and 1.5, of which logarithms and roots exist; zeros, which index everything, in other types.
Tensor make_operand(const TensorType& type) {
  Tensor tensor(type);
  auto* bytes = static_cast<std::byte*>(tensor.data());
  if (!is_floating(type.dtype)) {
    std::memset(bytes, 0, static_cast<size_t>(type.bytes()));
    return tensor;
  }
  constexpr int64_t kPattern = 4096;
  const int64_t count = type.bytes() / unpacked_size(type.dtype), first = std::min(count, kPattern);
  for (int64_t i = 0; i < first; ++i)
    store_element(type.dtype, bytes, i, 0.5 + static_cast<double>(i * 2654435761u % 1021) / 1021);
  for (int64_t at = first; at < count; at += kPattern)
    std::memcpy(bytes + byte_size(type.dtype, at), bytes,
                static_cast<size_t>(byte_size(type.dtype, std::min(kPattern, count - at))));
  return tensor;
}

}  // namespace

std::vector<double> measure_kernels(std::span<const std::unique_ptr<Kernel>> kernels, const NodeSignature& node,
                                    double most_seconds) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  std::vector<Tensor> operands;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const TensorType& type : node.inputs) inputs.push_back(operands.emplace_back(make_operand(type)).data());
  for (const TensorType& type : node.outputs) outputs.push_back(operands.emplace_back(make_operand(type)).data());
  int64_t workspace_bytes = kAlignment;
  for (const auto& kernel : kernels) workspace_bytes = std::max(workspace_bytes, kernel->workspace_bytes());
  const auto workspace = allocate_aligned(workspace_bytes);

  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<double> seconds(kernels.size(), kNever), second_best = seconds;
  std::vector<bool> is_left(kernels.size(), true);
  const auto is_settled = [&](size_t at) { return !is_left[at] || second_best[at] <= kAgreeing * seconds[at]; };
  const Clock::time_point begin = Clock::now();
  // Round 0 touches the memory for the first time and does not count.
  for (int round = 0; round <= kMostRounds && (round < kFewestRounds || since(begin) < most_seconds); ++round) {
    for (size_t turn = 0; turn < kernels.size(); ++turn) {
      const size_t at = round % 2 == 0 ? turn : kernels.size() - 1 - turn;
      if (!is_left[at]) continue;
      const Clock::time_point start = Clock::now();
      try {
        kernels[at]->run({inputs, outputs, workspace.get()});
      } catch (const Error&) {
        is_left[at] = false;
        seconds[at] = kNever;
        continue;
      }
      if (round == 0) continue;
      const double taken = since(start);
      second_best[at] = std::min(second_best[at], std::max(seconds[at], taken));
      seconds[at] = std::min(seconds[at], taken);
    }
    if (round < kFewestRounds - 1) continue;
    const double fastest = *std::min_element(seconds.begin(), seconds.end());
    bool settled = true;
    for (size_t at = 0; at < kernels.size(); ++at) {
      if (seconds[at] > kFarBehind * fastest) is_left[at] = false;
      settled = settled && is_settled(at);
    }
    if (settled) break;
  }
  return seconds;
}

}  // namespace weft
