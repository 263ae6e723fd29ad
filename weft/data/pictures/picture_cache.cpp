#include "weft/data/pictures/picture_cache.h"

#include <algorithm>

namespace weft::data {

PictureCache::Picture PictureCache::get(int64_t index, const std::function<Image()>& make) const {
  const auto at = static_cast<size_t>(index);
  {
    const std::lock_guard lock(mutex_);
    if (kept_[at]) return kept_[at];
  }
  if (std::optional<Image> image = on_disk_.get(index)) return std::make_shared<const Image>(std::move(*image));
  auto image = std::make_shared<const Image>(make());
  const auto size = static_cast<int64_t>(image->pixels.size());
  {
    const std::lock_guard lock(mutex_);
    if (kept_[at]) return image;
    if (bytes_ + size <= limit_bytes_) {
      kept_[at] = image;
      bytes_ += size;
      return image;
    }
  }
  if (limit_bytes_ > 0) on_disk_.add(index, *image);
  return image;
}

bool PictureCache::keeps(int64_t index) const {
  const std::lock_guard lock(mutex_);
  return kept_[static_cast<size_t>(index)] != nullptr;
}

int64_t PictureCache::estimate_bytes(const std::function<Picture(int64_t)>& picture) const {
  const int64_t looked_at = std::min<int64_t>(size(), 64);
  if (limit_bytes_ == 0 || looked_at == 0) return 0;
  int64_t bytes = 0;
  for (int64_t at = 0; at < looked_at; ++at)
    bytes += static_cast<int64_t>(picture(at * size() / looked_at)->pixels.size());
  return bytes * size() / looked_at;
}

int64_t PictureCache::bytes_to_come(int64_t all_bytes) const {
  return std::max<int64_t>(0, std::min<int64_t>(limit_bytes_, all_bytes) - bytes_);
}

int64_t PictureCache::bytes_left_out(int64_t all_bytes) const {
  if (limit_bytes_ == 0) return 0;  // somebody wants it so
  return std::max<int64_t>(0, all_bytes - limit_bytes_ - on_disk_.limit_bytes());
}

}  // namespace weft::data
