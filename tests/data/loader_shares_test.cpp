// The shares of several loaders, one after the other, are the batches of one alone, bit for bit.
#include <cstring>
#include <numeric>

#include "tests/data/idx_bytes.h"
#include "weft/data/augment/erase.h"
#include "weft/data/load/loader.h"

namespace weft::data {
namespace {

constexpr int64_t kClasses = 7;

/// Images of 3x4 pixels in one channel, no two alike.
MemoryDataset images(int64_t count) {
  std::vector<uint8_t> pixels, labels;
  for (int64_t sample = 0; sample < count; ++sample) {
    labels.push_back(static_cast<uint8_t>(sample % kClasses));
    for (int64_t pixel = 0; pixel < 12; ++pixel)
      pixels.push_back(static_cast<uint8_t>((sample * 31 + pixel * 17 + sample * pixel) % 251));
  }
  return MemoryDataset({"images", Shape{1, 3, 4}, kClasses, {}}, std::move(pixels), std::move(labels));
}

LoaderOptions options_for(int64_t batch) {
  LoaderOptions options;
  options.batch = batch;
  options.seed = 5;
  options.workers = 2;
  options.prefetch = 2;
  options.shuffle = options.drop_last = true;
  options.statistics = {{0.4f}, {0.2f}};
  return options;
}

LoaderOptions augmented(int64_t batch) {
  LoaderOptions options = options_for(batch);
  options.augment.crop_padding = 1;
  options.augment.flip = Flip::random;
  options.augment.changes = {erasing_change(0.5)};
  options.augment.rotate = 20;
  return options;
}

/// Of both tensors the rows that count, one behind the other.
struct Rows {
  std::string samples, targets;
  int64_t count = 0;
  void add(const Batch& batch, int64_t sample_bytes, int64_t target_bytes, int64_t turn = 0, int64_t turns = 1) {
    const int64_t rows = batch.count / turns;
    const auto append = [&](std::string& to, const Tensor& from, int64_t bytes) {
      to.append(static_cast<const char*>(from.data()) + turn * rows * bytes, static_cast<size_t>(rows * bytes));
    };
    append(samples, batch.samples, sample_bytes);
    append(targets, batch.targets, target_bytes);
    count += rows;
  }
};

/// Compares so many batches from a place on.
void expect_shares_make_whole(const Dataset& dataset, const LoaderOptions& options, int shares, int64_t epoch = 0,
                              int64_t step = 0, int batches = 12) {
  Loader whole(dataset, options);
  std::vector<std::unique_ptr<Loader>> parts;
  for (int share = 0; share < shares; ++share) {
    LoaderOptions own = options;
    own.share = share;
    own.shares = shares;
    own.workers = share % 3;
    parts.push_back(std::make_unique<Loader>(dataset, own));
    ASSERT_EQ(parts.back()->steps_per_epoch(), whole.steps_per_epoch());
    parts.back()->start(epoch, step);
  }
  whole.start(epoch, step);
  for (int number = 0; number < batches; ++number) {
    const Batch& wanted = whole.next();
    const BatchCourse course(dataset.size(), options.drop_last, stages_of(options));
    const Shape sample = scaled_shape(
        dataset.info().sample_shape, stages_of(options)[course.piece_of(wanted.epoch, wanted.step).stage].image_height);
    const int64_t sample_bytes = byte_size(wanted.samples.dtype(), sample.elements());
    const int64_t target_bytes = options.mix.on() ? byte_size(DType::f32, kClasses) : dataset.info().target_bytes();
    Rows all, together, directly;
    all.add(wanted, sample_bytes, target_bytes);
    std::vector<const Batch*> of_parts;
    for (const std::unique_ptr<Loader>& part : parts) {
      const Batch& batch = *of_parts.emplace_back(&part->next());
      ASSERT_EQ(batch.epoch, wanted.epoch);
      ASSERT_EQ(batch.step, wanted.step);
      if (options.drop_last) {
        ASSERT_EQ(batch.count * shares, wanted.count);
      }
    }
    for (int64_t turn = 0; turn < options.turns; ++turn)
      for (size_t part = 0; part < parts.size(); ++part) {
        const Batch& batch = *of_parts[part];
        together.add(batch, sample_bytes, target_bytes, turn, options.turns);
        directly.add(parts[part]->load_batch(batch.epoch, batch.step), sample_bytes, target_bytes, turn, options.turns);
      }
    ASSERT_EQ(together.count, wanted.count);
    ASSERT_TRUE(together.samples == all.samples && together.targets == all.targets) << shares << " at " << number;
    ASSERT_TRUE(directly.samples == all.samples && directly.targets == all.targets) << shares << " at " << number;
  }
}

TEST(LoaderShares, OfPlainBatches) {
  const MemoryDataset dataset = images(50);
  for (const int shares : {1, 2, 3, 4, 12}) expect_shares_make_whole(dataset, options_for(12), shares);
}

TEST(LoaderShares, OfAugmentedBatches) {
  const MemoryDataset dataset = images(50);
  for (const int shares : {2, 4, 12}) expect_shares_make_whole(dataset, augmented(12), shares);
}

TEST(LoaderShares, OfMixedBatchesWhoseNeighboursLieInOtherShares) {
  const MemoryDataset dataset = images(50);
  for (const MixOptions mix : {MixOptions{.mixup = 0.8, .cutmix = 0}, {.mixup = 0, .cutmix = 1}, {0.4, 1}})
    for (const int shares : {1, 2, 3, 12}) {
      LoaderOptions options = augmented(12);
      options.mix = mix;
      expect_shares_make_whole(dataset, options, shares);
    }
}

/// As the ranks of a pipeline share each micro-batch.
TEST(LoaderShares, OfEachTurnOfABatch) {
  const MemoryDataset dataset = images(50);
  for (const MixOptions mix : {MixOptions{}, MixOptions{.mixup = 0.8, .cutmix = 0}, {.mixup = 0, .cutmix = 1}})
    for (const int shares : {1, 2, 4}) {
      LoaderOptions options = augmented(12);
      options.turns = 3;
      options.mix = mix;
      expect_shares_make_whole(dataset, options, shares);
    }
}

TEST(LoaderShares, OfBatchesAndImagesThatChangeBetweenEpochs) {
  const MemoryDataset dataset = images(50);
  for (const double mixup : {0.0, 0.8}) {
    LoaderOptions options = augmented(1);
    options.mix.mixup = mixup;
    options.stages = {{0, 12, 0}, {1, 24, 6}, {2, 6, 2}};
    for (const int shares : {2, 6}) expect_shares_make_whole(dataset, options, shares, 0, 0, 20);
  }
}

TEST(LoaderShares, FromTheMiddleOfAnEpoch) {
  const MemoryDataset dataset = images(50);
  LoaderOptions options = augmented(12);
  options.mix.cutmix = 1;
  for (const int shares : {2, 4}) expect_shares_make_whole(dataset, options, shares, 3, 2);
}

TEST(LoaderShares, OfIncompleteBatchesInEvaluation) {
  const MemoryDataset dataset = images(50);
  for (const int64_t batch : {4, 7, 16, 49, 60})
    for (const int shares : {2, 3, 5}) {
      LoaderOptions options = options_for(batch);
      options.shuffle = options.drop_last = false;
      expect_shares_make_whole(dataset, options, shares, 0, 0, 14);
    }
}

TEST(LoaderShares, MoreOfThemThanSamplesLeaveSomeWithNone) {
  const MemoryDataset dataset = images(3);
  LoaderOptions options = options_for(8);
  options.shuffle = options.drop_last = false;
  expect_shares_make_whole(dataset, options, 5, 0, 0, 3);
}

/// Shares that change while batches are under way: whoever has them, the rows are those of whole batches, each once.
void expect_changing_shares_make_whole(const LoaderOptions& options, const std::vector<std::vector<int64_t>>& changes) {
  const MemoryDataset dataset = images(50);
  Loader whole(dataset, options);
  whole.start();
  std::vector<std::unique_ptr<Loader>> parts;
  const size_t count = changes.front().size();
  for (size_t share = 0; share < count; ++share) {
    LoaderOptions own = options;
    own.share = static_cast<int>(share);
    own.shares = static_cast<int>(count);
    own.grains = 12;
    own.workers = static_cast<int>(share) % 3;
    own.prefetch = 2 + static_cast<int>(share);
    parts.push_back(std::make_unique<Loader>(dataset, own));
  }
  const auto first_of = [](const std::vector<int64_t>& shares, size_t share) {
    return std::accumulate(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(share), int64_t{0});
  };
  for (size_t share = 0; share < count; ++share) {
    parts[share]->set_share(first_of(changes[0], share), changes[0][share]);
    parts[share]->start();
  }
  const int64_t later = parts.back()->batches_ahead();  // the most of all
  std::vector<int64_t> expected = changes[0];
  size_t next_change = 1;
  int64_t holds_from = -1;
  for (int64_t number = 0; number < 40; ++number) {
    const Batch& wanted = whole.next();
    if (number == holds_from) expected = changes[next_change++];
    Rows all, together;
    const int64_t sample_bytes = byte_size(DType::f32, 12);
    const int64_t target_bytes = options.mix.on() ? byte_size(DType::f32, kClasses) : dataset.info().target_bytes();
    all.add(wanted, sample_bytes, target_bytes);
    for (size_t share = 0; share < count; ++share) {
      const Batch& batch = parts[share]->next();
      ASSERT_EQ(batch.count, expected[share] * options.batch / 12) << number;
      together.add(batch, sample_bytes, target_bytes);
    }
    ASSERT_TRUE(together.samples == all.samples && together.targets == all.targets) << number;
    if (number % 10 == 3 && next_change < changes.size()) {
      for (size_t share = 0; share < count; ++share)
        parts[share]->change_share(first_of(changes[next_change], share), changes[next_change][share], later);
      holds_from = number + 1 + later;
    }
  }
  EXPECT_EQ(next_change, changes.size());
}

TEST(LoaderShares, OfGrainsMayChangeWhileBatchesAreUnderWay) {
  expect_changing_shares_make_whole(augmented(12), {{6, 6}, {9, 3}, {1, 11}, {6, 6}});
  expect_changing_shares_make_whole(augmented(24), {{4, 4, 4}, {1, 1, 10}, {5, 6, 1}});
}

TEST(LoaderShares, OfGrainsWhoseNeighboursAreMixed) {
  LoaderOptions options = augmented(12);
  options.mix.mixup = 0.4;
  options.mix.cutmix = 1;
  expect_changing_shares_make_whole(options, {{6, 6}, {9, 3}, {1, 11}});
}

LoaderOptions two_shares_of_grains() {
  LoaderOptions options = options_for(12);
  options.shares = 2;
  options.grains = 12;
  return options;
}

TEST(LoaderShares, ARunThatBeginsAnewHasTheSharesOrderedLast) {
  const MemoryDataset dataset = images(50);
  Loader loader(dataset, two_shares_of_grains());
  loader.start();
  EXPECT_EQ(loader.next().count, 6);
  loader.change_share(0, 9, loader.batches_ahead());
  loader.start();
  EXPECT_EQ(loader.next().count, 9);
}

TEST(LoaderSharesErrors, BatchesUnderWayKeepTheirRows) {
  const MemoryDataset dataset = images(50);
  Loader loader(dataset, two_shares_of_grains());
  loader.start();
  loader.next();
  expect_error([&] { loader.change_share(0, 9, loader.batches_ahead() - 1); }, ErrorKind::internal, {"under way"});
  loader.change_share(0, 9, loader.batches_ahead());
  expect_error([&] { loader.change_share(0, 8, 5); }, ErrorKind::internal, {"one change of the share at a time"});
}

TEST(LoaderSharesErrors, GrainsThatDoNotDivideTheBatch) {
  const MemoryDataset dataset = images(50);
  LoaderOptions options = options_for(12);
  options.grains = 8;
  expect_error([&] { Loader(dataset, options); }, ErrorKind::usage, {"batch 12", "8 equal grains", "choose 16"});
}

TEST(LoaderSharesErrors, ABatchThatCannotBeDividedNamesTheNearest) {
  const MemoryDataset dataset = images(50);
  LoaderOptions options = options_for(10);
  options.shares = 4;
  expect_error([&] { Loader(dataset, options); }, ErrorKind::usage, {"batch 10", "4 equal shares", "8 or 12"});
  options.batch = 3;
  expect_error([&] { Loader(dataset, options); }, ErrorKind::usage, {"batch 3", "choose 4"});
}

}  // namespace
}  // namespace weft::data
