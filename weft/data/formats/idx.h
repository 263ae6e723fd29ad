// IDX, the format of MNIST and its relatives: a magic number, big-endian dimensions, bytes.
// http://yann.lecun.com/exdb/mnist (section "file formats")
#pragma once

#include <filesystem>
#include <memory>

#include "weft/data/dataset/dataset.h"

namespace weft::data {

struct IdxFile {
  std::vector<int64_t> dims;
  std::vector<uint8_t> content;  // the whole file, header included
  size_t offset = 0;             // of the first element
};
/// Unsigned bytes of 1 to 4 dimensions, gzip or not. Error(io) or Error(data), naming the path.
IdxFile read_idx(const std::filesystem::path& path);

/// Images (N,H,W) or (N,C,H,W) with labels (N). `info` brings name, classes and class names; the shape is filled in.
std::unique_ptr<Dataset> read_idx_dataset(DatasetInfo info, const std::filesystem::path& images,
                                          const std::filesystem::path& labels);

/// One more than the largest label of a label file.
int64_t count_idx_classes(const std::filesystem::path& labels);

}  // namespace weft::data
