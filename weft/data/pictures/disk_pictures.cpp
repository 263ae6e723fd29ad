#include "weft/data/pictures/disk_pictures.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace weft::data {

namespace {

std::filesystem::path temporary_folder() {
  const char* given = std::getenv("TMPDIR");
  return given != nullptr && *given != '\0' ? given : "/var/tmp";
}

/// -1 where there can be none.
int open_without_name() {
  const std::filesystem::path folder = temporary_folder();
  const int descriptor = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor >= 0) return descriptor;
  std::string name = (folder / "weft-XXXXXX").string();  // some file systems know no files without a name
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

bool write_at(int descriptor, const uint8_t* from, size_t bytes, int64_t offset) {
  while (bytes > 0) {
    const ssize_t put = pwrite(descriptor, from, bytes, offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    from += put;
    bytes -= static_cast<size_t>(put);
    offset += put;
  }
  return true;
}

bool read_at(int descriptor, uint8_t* to, size_t bytes, int64_t offset) {
  while (bytes > 0) {
    const ssize_t got = pread(descriptor, to, bytes, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<size_t>(got);
    offset += got;
  }
  return true;
}

}  // namespace

DiskPictures::DiskPictures(int64_t count, int64_t limit_bytes)
    : limit_bytes_(limit_bytes), count_(static_cast<size_t>(count)) {}

DiskPictures::~DiskPictures() {
  if (descriptor_ >= 0) close(descriptor_);
}

int64_t DiskPictures::usual_limit_bytes() {
  std::error_code code;
  const std::filesystem::space_info space = std::filesystem::space(temporary_folder(), code);
  return code ? 0 : static_cast<int64_t>(space.available / 4);
}

void DiskPictures::add(int64_t index, const Image& image) {
  const auto size = static_cast<int64_t>(image.pixels.size());
  Place place{.channels = static_cast<int32_t>(image.channels),
              .height = static_cast<int32_t>(image.height),
              .width = static_cast<int32_t>(image.width)};
  {
    const std::lock_guard lock(mutex_);
    if (bytes_ + size > limit_bytes_) return;
    places_.resize(count_);  // once; data that fit into memory need none
    if (places_[static_cast<size_t>(index)].offset >= 0) return;
    if (descriptor_ < 0 && (descriptor_ = open_without_name()) < 0) {
      limit_bytes_ = 0;
      return;
    }
    place.offset = bytes_;
    bytes_ += size;
  }
  if (!write_at(descriptor_, image.pixels.data(), image.pixels.size(), place.offset)) {
    limit_bytes_ = 0;  // a full disk
    return;
  }
  const std::lock_guard lock(mutex_);
  places_[static_cast<size_t>(index)] = place;
}

std::optional<Image> DiskPictures::get(int64_t index) const {
  Place place;
  {
    const std::lock_guard lock(mutex_);
    if (places_.empty()) return std::nullopt;
    place = places_[static_cast<size_t>(index)];
  }
  if (place.offset < 0) return std::nullopt;
  Image image{place.channels, place.height, place.width, {}};
  image.pixels.resize(static_cast<size_t>(image.channels * image.height * image.width));
  if (!read_at(descriptor_, image.pixels.data(), image.pixels.size(), place.offset)) return std::nullopt;
  return image;
}

}  // namespace weft::data
