// Decoded pictures kept in memory up to a limit, then on disk up to another. What does not fit is decoded each time:
// passes visit every picture once, so that none deserves a place more than another and nothing is ever thrown out.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "weft/data/pictures/disk_pictures.h"
#include "weft/data/pictures/image.h"

namespace weft::data {

class PictureCache {
 public:
  PictureCache(int64_t count, int64_t limit_bytes, int64_t disk_limit_bytes = 0)
      : limit_bytes_(limit_bytes), kept_(static_cast<size_t>(count)), on_disk_(count, disk_limit_bytes) {}

  using Picture = std::shared_ptr<const Image>;
  /// The picture of this number, made by `make` where it is not kept. Thread-safe.
  Picture get(int64_t index, const std::function<Image()>& make) const;
  /// In memory.
  bool keeps(int64_t index) const;
  int64_t bytes() const { return bytes_; }
  int64_t disk_bytes() const { return on_disk_.bytes(); }
  int64_t limit_bytes() const { return limit_bytes_; }
  /// What is kept already stays.
  void set_limit_bytes(int64_t bytes) { limit_bytes_ = bytes; }

  /// What all pictures would take: an estimate by some that are spread evenly, of which `picture` gives each.
  int64_t estimate_bytes(const std::function<Picture(int64_t)>& picture) const;
  /// The same where each takes as much.
  int64_t estimate_bytes(int64_t bytes_each) const { return size() * bytes_each; }
  /// What it will still take in memory when all have been seen, and what then finds no place, of such an estimate.
  int64_t bytes_to_come(int64_t all_bytes) const;
  int64_t bytes_left_out(int64_t all_bytes) const;

 private:
  int64_t size() const { return static_cast<int64_t>(kept_.size()); }
  std::atomic<int64_t> limit_bytes_;
  mutable std::mutex mutex_;
  mutable std::atomic<int64_t> bytes_{0};
  mutable std::vector<Picture> kept_;
  mutable DiskPictures on_disk_;
};

}  // namespace weft::data
