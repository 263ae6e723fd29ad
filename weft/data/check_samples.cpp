#include "weft/data/check_samples.h"

#include <map>
#include <mutex>

#include "weft/base/error.h"
#include "weft/base/parallel.h"

namespace weft::data {

std::vector<std::string> unreadable_samples(const Dataset& dataset, int threads) {
  std::mutex mutex;
  std::map<int64_t, std::string> messages;
  parallel_for(threads, dataset.size(), 16, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> sample(static_cast<size_t>(dataset.sample_bytes()));
    for (int64_t index = begin; index < end; ++index) try {
        dataset.get({.index = index}, sample);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        messages[index] = error.what();
      }
  });
  std::vector<std::string> in_order;
  for (auto& [index, message] : messages) in_order.push_back(std::move(message));
  return in_order;
}

}  // namespace weft::data
