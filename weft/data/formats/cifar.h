// CIFAR-10, binary version: records of one label byte and 3x32x32 pixel bytes in C,H,W order.
// https://www.cs.toronto.edu/~kriz/cifar.html
#pragma once

#include <filesystem>
#include <memory>

#include "weft/data/dataset/dataset.h"

namespace weft::data {

/// Reads data_batch_1.bin ... data_batch_5.bin or test_batch.bin of the folder. Error(io) or Error(data), naming the
/// file.
std::unique_ptr<Dataset> read_cifar10(const std::filesystem::path& directory, Split split);

}  // namespace weft::data
