#include "weft/data/picture_cache.h"

namespace weft::data {

std::shared_ptr<const Image> PictureCache::get(int64_t index, const std::function<Image()>& make) const {
  const auto at = static_cast<size_t>(index);
  {
    const std::lock_guard lock(mutex_);
    if (kept_[at]) return kept_[at];
  }
  auto image = std::make_shared<const Image>(make());
  const auto size = static_cast<int64_t>(image->pixels.size());
  const std::lock_guard lock(mutex_);
  if (!kept_[at] && bytes_ + size <= limit_bytes_) {
    kept_[at] = image;
    bytes_ += size;
  }
  return image;
}

}  // namespace weft::data
