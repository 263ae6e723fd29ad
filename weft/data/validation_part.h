// Sets a part of the training data aside for validation: what chooses between checkpoints and ends a run, so that the
// test data choose nothing.
#pragma once

#include <cstdint>
#include <memory>

#include "weft/data/dataset/dataset.h"

namespace weft::data {

struct TrainingParts {
  std::unique_ptr<Dataset> training, validation;
};

/// Divides `dataset`: round(share n) samples of each class are for validation, drawn by the seed and the samples' order
/// alone; where targets are no classes, of all samples. Of a row of tokens the last part is for validation. Both parts
/// keep what they decode in one cache. Error(usage) where a part would be empty.
TrainingParts set_validation_aside(std::unique_ptr<Dataset> dataset, double share, uint64_t seed);

}  // namespace weft::data
