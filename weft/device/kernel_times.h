// How long kernels took, and what a device is told of that when it is made: a device that can choose does so by it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace weft {

/// What one call of a kernel took.
struct KernelTime {
  std::string kernel;
  double seconds = 0;
  friend bool operator==(const KernelTime&, const KernelTime&) = default;
};

/// By signature_key(): all kernels that serve such nodes, the one to take first.
using KernelTimes = std::map<std::string, std::vector<KernelTime>>;

struct Tuning {
  KernelTimes known = {};     // taken without measuring
  double budget_seconds = 0;  // for measuring nodes that are not known; 0, or used up: the first candidate runs them
  std::function<void(const std::string& line)> note = {};  // told once, before anything is measured
};

}  // namespace weft
