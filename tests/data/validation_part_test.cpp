#include "weft/data/validation_part.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/error_of.h"
#include "weft/data/formats/text.h"

namespace weft::data {
namespace {

/// Sample n is a pixel of value n, in class n % 3.
std::unique_ptr<Dataset> counted(int64_t samples) {
  std::vector<uint8_t> pixels, labels;
  for (int64_t sample = 0; sample < samples; ++sample) {
    pixels.push_back(static_cast<uint8_t>(sample));
    labels.push_back(static_cast<uint8_t>(sample % 3));
  }
  return std::make_unique<MemoryDataset>(DatasetInfo{"counted", {1, 1, 1}, 3, {}}, std::move(pixels),
                                         std::move(labels));
}

std::set<int> samples_of(const Dataset& dataset) {
  std::set<int> found;
  for (int64_t index = 0; index < dataset.size(); ++index) {
    uint8_t pixel = 0;
    dataset.get({index, 0}, {&pixel, 1});
    found.insert(pixel);
  }
  return found;
}

TEST(ValidationPart, PartsHaveEverySampleOnce) {
  const TrainingParts parts = set_validation_aside(counted(90), 0.2, 1);
  const std::set<int> training = samples_of(*parts.training), validation = samples_of(*parts.validation);
  EXPECT_EQ(training.size(), 72u);
  EXPECT_EQ(validation.size(), 18u);
  for (const int sample : validation) EXPECT_FALSE(training.contains(sample)) << sample;
}

TEST(ValidationPart, HasTheSameShareOfEachClass) {
  const TrainingParts parts = set_validation_aside(counted(90), 0.2, 1);
  std::map<int, int> classes;
  for (int64_t index = 0; index < parts.validation->size(); ++index) {
    ++classes[parts.validation->label(index)];
    uint8_t pixel = 0;
    parts.validation->get({index, 0}, {&pixel, 1});
    EXPECT_EQ(parts.validation->label(index), pixel % 3) << "samples keep their targets";
  }
  EXPECT_EQ(classes, (std::map<int, int>{{0, 6}, {1, 6}, {2, 6}}));
}

TEST(ValidationPart, IsDrawnByTheSeed) {
  const auto drawn = [](uint64_t seed) { return samples_of(*set_validation_aside(counted(90), 0.2, seed).validation); };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

TEST(ValidationPart, OfTokensIsTheEnd) {
  std::vector<uint16_t> tokens(1000);
  for (size_t at = 0; at < tokens.size(); ++at) tokens[at] = static_cast<uint16_t>(at % 50);
  DatasetInfo info{"text", {10}, 50, {}};
  info.sample_dtype = DType::i32;
  info.task = "language_model";
  info.target_dtype = DType::i32;
  info.target_shape = {10};
  const TrainingParts parts = set_validation_aside(make_text_windows(info, tokens, true), 0.1, 1);
  EXPECT_EQ(parts.training->tokens().size(), 900u);
  EXPECT_EQ(parts.validation->tokens().size(), 100u);
  EXPECT_EQ(parts.validation->tokens().front(), tokens[900]);
}

TEST(ValidationPart, APartWithoutSamplesIsAnError) {
  EXPECT_EQ(test::error_of([] { set_validation_aside(counted(6), 0.01, 1); }),
            "validation = 0.01 leaves no sample for validation of the 6 in the training data 'counted'; choose another "
            "share, or validation=0");
}

}  // namespace
}  // namespace weft::data
