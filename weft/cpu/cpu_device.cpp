#include "weft/cpu/cpu_device.h"

#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "weft/base/isa.h"
#include "weft/base/version.h"
#include "weft/cpu/onednn/isa.h"
#include "weft/cpu/tuned_backend.h"

namespace weft {

namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string describe_machine(int threads) {
  return fmt::format("{}, {} kernels, oneDNN {} with {}, weft {}, {} threads", processor(), name_of(detect_isa()),
                     onednn::library_version(), onednn::effective_isa(), version(), threads);
}

}  // namespace

DeviceKind cpu_device() {
  const auto make = [](DeviceRequest request) -> std::unique_ptr<Device> {
    return std::make_unique<TunedBackend>(request.threads, std::move(request.kernels), std::move(request.tuning));
  };
  return {"cpu", make, describe_machine};
}

}  // namespace weft
