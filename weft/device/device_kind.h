// How devices of one kind are made: the one place from which runs, commands and checks get theirs. Library::device is
// the kind that a program computes on.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "weft/device/device.h"

namespace weft {

struct DeviceRequest {
  int threads = 1;
  KernelTable kernels;  // those of the library's ops; with collectives, where there are several ranks
  Tuning tuning = {};
};

struct DeviceKind {
  std::string name;  // "cpu"
  /// Error(usage) for less than one thread.
  std::function<std::unique_ptr<Device>(DeviceRequest)> make;
  /// All that measured times of kernels depend on, as text: processor, instructions, libraries, versions, threads.
  std::function<std::string(int threads)> describe_machine;
};

}  // namespace weft
