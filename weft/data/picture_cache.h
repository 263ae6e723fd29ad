// Decoded pictures kept in memory up to a limit. What does not fit is decoded each time: passes visit every picture
// once, so that none deserves a place more than another and nothing is ever thrown out.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "weft/data/image.h"

namespace weft::data {

class PictureCache {
 public:
  PictureCache(int64_t count, int64_t limit_bytes) : limit_bytes_(limit_bytes), kept_(static_cast<size_t>(count)) {}

  /// The picture of this number, made by `make` where it is not kept. Thread-safe.
  std::shared_ptr<const Image> get(int64_t index, const std::function<Image()>& make) const;
  int64_t bytes() const { return bytes_; }
  int64_t limit_bytes() const { return limit_bytes_; }

 private:
  int64_t limit_bytes_;
  mutable std::mutex mutex_;
  mutable std::atomic<int64_t> bytes_{0};
  mutable std::vector<std::shared_ptr<const Image>> kept_;
};

}  // namespace weft::data
