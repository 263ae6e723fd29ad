#include "weft/data/formats/idx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/files.h"

namespace weft::data {

namespace {

constexpr uint8_t kUnsignedByte = 0x08;
constexpr int64_t kLargestSample = int64_t{1} << 26;  // bytes: a larger image is a damaged header

IdxFile read_labels(const std::filesystem::path& path) {
  IdxFile file = read_idx(path);
  if (file.dims.size() != 1)
    fail(ErrorKind::data, "'{}' has dimensions ({}), labels have one; is it the image file? give IMAGES,LABELS",
         path.string(), fmt::join(file.dims, ","));
  if (file.dims[0] == 0) fail(ErrorKind::data, "'{}' holds no labels; fetch the file again", path.string());
  return file;
}

}  // namespace

IdxFile read_idx(const std::filesystem::path& path) {
  IdxFile file;
  file.content = read_maybe_gzip(path);
  const std::vector<uint8_t>& bytes = file.content;
  const std::string shown = path.string();
  if (bytes.size() < 4)
    fail(ErrorKind::data, "'{}' is no IDX file: {} bytes are too few; fetch it again", shown, bytes.size());
  const int rank = bytes[3];
  if (bytes[0] != 0 || bytes[1] != 0 || rank < 1 || rank > 4)
    fail(ErrorKind::data,
         "'{}' is no IDX file: it begins with {:02x} {:02x} {:02x} {:02x}, not 00 00 08 and 1 to 4 dimensions", shown,
         bytes[0], bytes[1], bytes[2], bytes[3]);
  if (bytes[2] != kUnsignedByte)
    fail(ErrorKind::data, "'{}' holds elements of IDX type 0x{:02x}; weft reads unsigned bytes (0x08) only", shown,
         bytes[2]);
  file.offset = 4 + 4 * static_cast<size_t>(rank);
  if (bytes.size() < file.offset)
    fail(ErrorKind::data, "'{}' is truncated within its header ({} bytes); fetch it again", shown, bytes.size());
  int64_t elements = 1;
  const auto available = static_cast<int64_t>(bytes.size() - file.offset);
  for (size_t axis = 0; axis < static_cast<size_t>(rank); ++axis) {
    const uint8_t* at = bytes.data() + 4 + 4 * axis;
    const auto dim = static_cast<int64_t>(uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3]);
    file.dims.push_back(dim);
    // Saturates: a product past 2^62 is larger than any file anyway.
    elements = dim != 0 && elements > (int64_t{1} << 62) / dim ? int64_t{1} << 62 : elements * dim;
  }
  if (elements != available)
    fail(ErrorKind::data, "'{}' is {}: its header says ({}), which is {} bytes, but {} follow; fetch it again", shown,
         elements > available ? "truncated" : "too long", fmt::join(file.dims, ","), elements, available);
  return file;
}

std::unique_ptr<Dataset> read_idx_dataset(DatasetInfo info, const std::filesystem::path& images,
                                          const std::filesystem::path& labels) {
  IdxFile pixels = read_idx(images);
  const IdxFile classes = read_labels(labels);
  if (pixels.dims.size() != 3 && pixels.dims.size() != 4)
    fail(ErrorKind::data, "'{}' has dimensions ({}), images have (N,H,W) or (N,C,H,W); give IMAGES,LABELS",
         images.string(), fmt::join(pixels.dims, ","));
  if (pixels.dims[0] != classes.dims[0])
    fail(ErrorKind::data, "'{}' holds {} images, but '{}' holds {} labels; take both files from the same split",
         images.string(), pixels.dims[0], labels.string(), classes.dims[0]);
  std::vector<int64_t> sample(pixels.dims.begin() + 1, pixels.dims.end());
  if (sample.size() == 2) sample.insert(sample.begin(), 1);
  info.sample_shape = Shape(std::move(sample));
  if (info.sample_shape.elements() < 1 || info.sample_shape.elements() > kLargestSample)
    fail(ErrorKind::data, "'{}' has images of shape {}; want at least 1 and at most {} pixels in each", images.string(),
         to_string(info.sample_shape), kLargestSample);
  for (size_t at = classes.offset; at < classes.content.size(); ++at)
    if (classes.content[at] >= info.classes)
      fail(ErrorKind::data, "'{}': label {} of sample {} is out of range: there are {} classes, counted from 0",
           labels.string(), classes.content[at], at - classes.offset, info.classes);
  std::vector<uint8_t> values(classes.content.begin() + static_cast<std::ptrdiff_t>(classes.offset),
                              classes.content.end());
  return std::make_unique<MemoryDataset>(std::move(info), std::move(pixels.content), std::move(values), pixels.offset);
}

int64_t count_idx_classes(const std::filesystem::path& labels) {
  const IdxFile file = read_labels(labels);
  return 1 + *std::max_element(file.content.begin() + static_cast<std::ptrdiff_t>(file.offset), file.content.end());
}

}  // namespace weft::data
