#include "weft/data/pictures/orientation.h"

#include <algorithm>
#include <cstring>

namespace weft::data {

namespace {

/// Numbers of a TIFF structure in the order of bytes that its header names; 0 outside of it.
class TiffBytes {
 public:
  explicit TiffBytes(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool is_tiff() {
    if (bytes_.size() < 8) return false;
    little_ = bytes_[0] == 'I';
    const bool known = (bytes_[0] == 'I' && bytes_[1] == 'I') || (bytes_[0] == 'M' && bytes_[1] == 'M');
    return known && number(2, 2) == 42;
  }
  uint64_t number(uint64_t at, uint64_t count) const {
    if (at + count > bytes_.size()) return 0;
    uint64_t value = 0;
    for (uint64_t i = 0; i < count; ++i) value = value << 8 | bytes_[at + (little_ ? count - 1 - i : i)];
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
  bool little_ = false;
};

int orientation_of(TiffBytes tiff) {
  constexpr uint64_t kEntryBytes = 12, kOrientation = 0x0112, kShort = 3;
  if (!tiff.is_tiff()) return 1;
  const uint64_t directory = tiff.number(4, 4), entries = tiff.number(directory, 2);
  for (uint64_t index = 0; index < entries; ++index) {
    const uint64_t entry = directory + 2 + index * kEntryBytes;
    if (tiff.number(entry, 2) != kOrientation) continue;
    const uint64_t value = tiff.number(entry + 8, 2);
    return tiff.number(entry + 2, 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace

int exif_orientation(std::span<const uint8_t> segment) {
  constexpr uint8_t kMarker[] = {'E', 'x', 'i', 'f', 0, 0};
  if (segment.size() < sizeof kMarker || std::memcmp(segment.data(), kMarker, sizeof kMarker) != 0) return 1;
  return orientation_of(TiffBytes(segment.subspan(sizeof kMarker)));
}

int png_orientation(std::span<const uint8_t> file) {
  constexpr uint64_t kSignature = 8, kAround = 12;  // bytes: of the file; length, name and checksum of a chunk
  for (uint64_t at = kSignature; at + kAround <= file.size();) {
    uint64_t length = 0;
    for (int byte = 0; byte < 4; ++byte) length = length << 8 | file[at + static_cast<uint64_t>(byte)];
    if (length > file.size() - at - kAround) return 1;
    if (std::memcmp(&file[at + 4], "eXIf", 4) == 0) return orientation_of(TiffBytes(file.subspan(at + 8, length)));
    at += kAround + length;
  }
  return 1;
}

Image upright(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  // 5 to 8 have rows and columns exchanged. Of the scene's pixel (y,x) the stored row and column run backwards or not.
  const bool exchanged = orientation >= 5;
  const bool rows_back = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool columns_back = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const int64_t height = exchanged ? image.width : image.height, width = exchanged ? image.height : image.width;
  Image turned{image.channels, height, width, {}};
  turned.pixels.resize(image.pixels.size());
  uint8_t* out = turned.pixels.data();
  for (int64_t channel = 0; channel < image.channels; ++channel) {
    const uint8_t* plane = image.pixels.data() + channel * image.height * image.width;
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        const int64_t row = exchanged ? x : y, column = exchanged ? y : x;
        *out++ = plane[(rows_back ? image.height - 1 - row : row) * image.width +
                       (columns_back ? image.width - 1 - column : column)];
      }
  }
  return turned;
}

}  // namespace weft::data
