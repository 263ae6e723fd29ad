#include "weft/program/cost_profile.h"

#include <algorithm>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/seal.h"
#include "weft/comm/on_all_ranks.h"

namespace weft::program {

DeviceProfile measure_profile(const Library& library, int threads) {
  const std::unique_ptr<Device> device = library.device.make({.threads = threads, .kernels = library.kernels});
  return profile_of(device->measure_rates(), kMeasuredProfile);
}

CostProfile agreed_profile(comm::Communicator* ranks, const Library& library, const std::string& choice, int threads) {
  const std::string text = comm::decided_by_first(ranks, "rates of the device", [&]() -> std::string {
    if (choice == kDefaultProfile) return "";
    if (choice == kMeasuredProfile) return print_device_profile(measure_profile(library, threads));
    return print_device_profile(parse_device_profile(read_text(choice), choice));
  });
  if (text.empty()) return {};
  return {text, rated_costs(parse_device_profile(text, "the first rank's cost profile"))};
}

std::string with_absolute_path(const std::string& choice) {
  if (choice == kDefaultProfile || choice == kMeasuredProfile) return choice;
  return std::filesystem::absolute(choice).lexically_normal().string();
}

std::string read_kept_profile(const std::string& file) {
  std::string text = read_text(file);
  if (!text.ends_with('\n'))
    fail(ErrorKind::data, "{}:{}: the file is cut off; put the whole one back, or start a new run", file,
         1 + std::count(text.begin(), text.end(), '\n'));
  check_text_seal(text, file);
  return print_device_profile(parse_device_profile(text, file));
}

}  // namespace weft::program
