#include "weft/data/dataset/check_samples.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "weft/base/error.h"
#include "weft/base/parallel.h"

namespace weft::data {

void check_info(const DatasetInfo& info) {
  const auto reject = [&](const std::string& message) {
    fail(ErrorKind::usage, "[data] '{}': {}", info.name, message);
  };
  const Shape &sample = info.sample_shape, &target = info.target_shape;
  const auto is_empty = [](int64_t size) { return size < 1; };
  if (std::any_of(sample.begin(), sample.end(), is_empty) || std::any_of(target.begin(), target.end(), is_empty))
    reject(fmt::format("samples {} with targets {} have a dimension without elements; every size is at least 1",
                       to_string(sample), to_string(target)));
  if (info.sample_dtype == DType::u8 && sample.rank() != 3)
    reject(fmt::format("u8 samples are images (channels,height,width), got {}; say f32 for other numbers",
                       to_string(sample)));
  if (info.classes < 1) reject("classes must be at least 1: how many there are, or how many values are predicted");
  if (is_floating(info.target_dtype) && target.elements() != info.classes)
    reject(fmt::format("targets {} hold {} values, but classes says {}; make them equal", to_string(target),
                       target.elements(), info.classes));
}

std::vector<std::string> unreadable_samples(const Dataset& dataset, int threads) {
  std::mutex mutex;
  std::map<int64_t, std::string> messages;
  parallel_for(threads, dataset.size(), 16, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> sample(static_cast<size_t>(dataset.sample_bytes())),
        target(static_cast<size_t>(dataset.target_bytes()));
    for (int64_t index = begin; index < end; ++index) try {
        dataset.get({.index = index}, sample);
        dataset.get_target({.index = index}, target);
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
