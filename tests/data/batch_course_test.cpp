// Where batches lie in epochs that differ.
#include "weft/data/load/batch_course.h"

#include <gtest/gtest.h>

#include <limits>

namespace weft::data {
namespace {

TEST(BatchCourse, CountsWholeBatches) {
  const BatchCourse course(100, true, {{0, 16, 0}, {2, 32, 0}, {3, 8, 0}});
  EXPECT_EQ(course.batches_of(1), 6);
  EXPECT_EQ(course.batches_of(2), 3);
  EXPECT_EQ(course.batches_of(9), 12);
  EXPECT_EQ(course.batches_before(3), 15);
  EXPECT_EQ(course.batches_before(5), 39);
}

TEST(BatchCourse, CountsTheRestAsABatchWhereItIsKept) {
  const BatchCourse course(100, false, {{0, 16, 0}, {1, 32, 0}});
  EXPECT_EQ(course.batches_of(0), 7);
  EXPECT_EQ(course.batches_of(1), 4);
}

TEST(BatchCourse, FindsThePlaceOfEveryBatch) {
  const BatchCourse course(100, true, {{0, 16, 0}, {2, 32, 0}, {3, 8, 0}});
  int64_t at = 0;
  for (int64_t epoch = 0; epoch < 6; ++epoch)
    for (int64_t batch = 0; batch < course.batches_of(epoch); ++batch, ++at) {
      EXPECT_EQ(course.place_of(at).epoch, epoch) << at;
      EXPECT_EQ(course.place_of(at).batch, batch) << at;
    }
}

/// 100 samples; batches of 16 until 45 % of the second epoch, then of 8.
BatchCourse within_the_second() {
  return BatchCourse(100, true, {{.batch = 16}, {.first_epoch = 1, .batch = 8, .first_part = 0.45}});
}

TEST(BatchCourse, AStageMayEndWithinAnEpochAfterTheNearestNumberOfBatches) {
  const BatchCourse course = within_the_second();
  EXPECT_EQ(course.batches_of(0), 6);
  EXPECT_EQ(course.batches_of(1), 3 + 6) << "48 samples, the nearest to 45; 52 are left for batches of 8";
  EXPECT_EQ(course.batches_of(2), 12);
  EXPECT_EQ(course.batches_before(2), 15);
  EXPECT_EQ(course.piece_of(1, 2).stage, 0u);
  EXPECT_EQ(course.piece_of(1, 3).stage, 1u);
  EXPECT_EQ(course.piece_of(1, 3).first_sample, 48);
}

TEST(BatchCourse, FindsThePlaceOfEveryBatchWithinEpochsToo) {
  const BatchCourse course = within_the_second();
  int64_t at = 0;
  for (int64_t epoch = 0; epoch < 5; ++epoch)
    for (int64_t batch = 0; batch < course.batches_of(epoch); ++batch, ++at) {
      EXPECT_EQ(course.place_of(at).epoch, epoch) << at;
      EXPECT_EQ(course.place_of(at).batch, batch) << at;
    }
}

TEST(BatchCourse, SeveralStagesMayChangeInOneEpoch) {
  const BatchCourse course(
      100, true, {{.batch = 10}, {.batch = 20, .first_part = 0.3}, {.batch = 5, .first_part = 0.75}, {2, 50}});
  EXPECT_EQ(course.batches_of(0), 3 + 2 + 6) << "30, 40 and 30 samples";
  EXPECT_EQ(course.batches_of(1), 20);
  EXPECT_EQ(course.batches_of(2), 2);
}

TEST(BatchCourse, WithinAnEpochStagesChangeBetweenSteps) {
  const BatchCourse course(100, true, {{.batch = 8, .accumulate = 3}, {.batch = 4, .first_part = 0.5}});
  EXPECT_EQ(course.piece_of(0, 0).batches, 6) << "two steps of 24 samples";
  EXPECT_EQ(course.batches_of(0), 6 + 13);
}

TEST(BatchCourse, WithoutAnEndThereIsTheGreatestNumber) {
  const BatchCourse course(100, true, {{0, 16, 0}, {2, 32, 0}});
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(course.batches_before(kMost), kMost);
}

TEST(BatchCourse, ScaledImagesKeepTheirProportions) {
  EXPECT_EQ(scaled_shape({3, 32, 32}, 0), Shape({3, 32, 32}));
  EXPECT_EQ(scaled_shape({3, 32, 32}, 24), Shape({3, 24, 24}));
  EXPECT_EQ(scaled_shape({1, 30, 20}, 15), Shape({1, 15, 10}));
  EXPECT_EQ(scaled_shape({1, 32, 100}, 5), Shape({1, 5, 16})) << "15.6 to the nearest";
}

}  // namespace
}  // namespace weft::data
