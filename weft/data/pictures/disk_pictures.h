// Decoded pictures in a temporary file, which has no name and is gone when the process ends, however it ends: reading
// one takes a fraction of the time that decoding it takes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "weft/data/pictures/image.h"

namespace weft::data {

class DiskPictures {
 public:
  /// In the folder TMPDIR, or /var/tmp. Makes no file before the first picture.
  DiskPictures(int64_t count, int64_t limit_bytes);
  ~DiskPictures();
  DiskPictures(const DiskPictures&) = delete;
  DiskPictures& operator=(const DiskPictures&) = delete;

  /// Keeps it where there is place; where the disk takes no more, nothing else is kept from then on. Thread-safe.
  void add(int64_t index, const Image& image);
  /// Empty where it is not kept, or cannot be read. Thread-safe.
  std::optional<Image> get(int64_t index) const;
  int64_t bytes() const { return bytes_; }
  int64_t limit_bytes() const { return limit_bytes_; }

  /// A quarter of what is free on the disk of that folder.
  static int64_t usual_limit_bytes();

 private:
  struct Place {
    int64_t offset = -1;  // -1: not kept
    int32_t channels = 0, height = 0, width = 0;
  };
  std::atomic<int64_t> limit_bytes_;
  const size_t count_;
  mutable std::mutex mutex_;
  int descriptor_ = -1;
  std::atomic<int64_t> bytes_{0};
  std::vector<Place> places_;
};

}  // namespace weft::data
