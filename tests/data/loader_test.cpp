#include "weft/data/load/loader.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "tests/data/idx_bytes.h"

namespace weft::data {
namespace {

/// 2x3 pixels of one channel; sample i has the label i % 7 and the pixels 6i, 6i+1, ...
class CountingDataset : public MemoryDataset {
 public:
  explicit CountingDataset(size_t size)
      : MemoryDataset({"counting", Shape{1, 2, 3}, 7, {}}, counting_bytes(6 * size), labels(size)) {}

 private:
  static Bytes labels(size_t size) {
    Bytes all(size);
    for (size_t at = 0; at < size; ++at) all[at] = static_cast<uint8_t>(at % 7);
    return all;
  }
};

/// The first failing_index samples are readable.
class FailingDataset : public Dataset {
 public:
  FailingDataset() : Dataset({"failing", Shape{1, 1, 1}, 1, {}}) {}
  int64_t size() const override { return 8; }
  void get(const SampleKey& key, std::span<uint8_t> destination) const override {
    const int64_t index = key.index;
    if (index == 5) fail(ErrorKind::io, "cannot read 'sample-5'");
    if (index == 7) throw std::runtime_error("odd");
    destination[0] = 0;
  }
  void get_target(const SampleKey&, std::span<uint8_t> destination) const override {
    std::fill(destination.begin(), destination.end(), uint8_t{0});
  }
};

LoaderOptions training_options(int64_t batch, int workers = 2) {
  LoaderOptions options;
  options.batch = batch;
  options.seed = 11;
  options.workers = workers;
  options.prefetch = 3;
  options.shuffle = true;
  options.augment.crop_padding = 1;
  options.augment.padding = Padding::reflect;
  options.augment.flip = Flip::random;
  options.statistics = {{0.5f}, {0.25f}};
  return options;
}

LoaderOptions evaluation_options(int64_t batch, int workers = 1) {
  LoaderOptions options;
  options.batch = batch;
  options.workers = workers;
  options.statistics = {{0.0f}, {1.0f / 255.0f}};
  return options;
}

bool same(const Batch& a, const Batch& b) {
  return a.count == b.count && a.epoch == b.epoch && a.step == b.step &&
         std::memcmp(a.samples.data(), b.samples.data(), static_cast<size_t>(a.samples.bytes())) == 0 &&
         std::memcmp(a.targets.data(), b.targets.data(), static_cast<size_t>(a.targets.bytes())) == 0;
}

TEST(Loader, DeliversWhatLoadBatchMakesForAnyNumberOfWorkers) {
  const CountingDataset dataset(37);
  for (const int workers : {0, 1, 2, 5}) {
    Loader loader(dataset, training_options(8, workers));
    loader.start();
    for (int64_t epoch = 0; epoch < 3; ++epoch)
      for (int64_t step = 0; step < loader.steps_per_epoch(); ++step)
        ASSERT_TRUE(same(loader.next(), loader.load_batch(epoch, step))) << workers << " " << epoch << " " << step;
  }
}

TEST(Loader, BatchesMayChangeBetweenEpochs) {
  const CountingDataset dataset(37);
  for (const int workers : {0, 1, 3}) {
    LoaderOptions options = training_options(8, workers);
    options.drop_last = true;
    options.stages = {{0, 8, 0}, {1, 16, 0}, {2, 5, 0}};
    Loader loader(dataset, options);
    loader.start();
    for (const auto& [epoch, batch] : {std::pair(0, 8), {1, 16}, {2, 5}, {3, 5}}) {
      LoaderOptions alone = training_options(batch);
      alone.drop_last = true;
      const Loader wanted(dataset, alone);
      for (int64_t step = 0; step < 37 / batch; ++step) {
        const Batch expected = wanted.load_batch(epoch, step);
        const Batch& next = loader.next();
        ASSERT_EQ(next.count, batch);
        ASSERT_EQ(next.epoch, epoch);
        ASSERT_EQ(next.step, step);
        ASSERT_EQ(
            std::memcmp(next.samples.data(), expected.samples.data(), static_cast<size_t>(expected.samples.bytes())),
            0);
        ASSERT_EQ(
            std::memcmp(next.targets.data(), expected.targets.data(), static_cast<size_t>(expected.targets.bytes())),
            0);
        ASSERT_TRUE(same(loader.load_batch(epoch, step), expected));
      }
    }
    loader.start(2, 3);
    EXPECT_EQ(loader.next().step, 3) << "begins in a later stage";
  }
}

TEST(Loader, StartsInTheMiddleOfAnEpoch) {
  const CountingDataset dataset(37);
  Loader whole(dataset, training_options(8)), resumed(dataset, training_options(8, 1));
  whole.start();
  for (int step = 0; step < 8; ++step) whole.next();  // 5 steps per epoch: now at epoch 1, step 3
  resumed.start(1, 3);
  for (int step = 0; step < 6; ++step) EXPECT_TRUE(same(whole.next(), resumed.next())) << step;
}

TEST(Loader, StartsAtTheEndOfAnEpochAsAtTheBeginningOfTheNext) {
  const CountingDataset dataset(16);
  Loader loader(dataset, training_options(8));
  loader.start(0, 2);
  EXPECT_TRUE(same(loader.next(), loader.load_batch(1, 0)));
}

TEST(Loader, CanBeStartedAnewAtAnyTime) {
  const CountingDataset dataset(64);
  Loader loader(dataset, training_options(4));
  for (int round = 0; round < 50; ++round) {
    loader.start(round, round % 16);
    for (int step = 0; step < round % 4; ++step) loader.next();
  }
  loader.start(2, 5);
  EXPECT_TRUE(same(loader.next(), loader.load_batch(2, 5)));
}

TEST(Loader, AnEpochHasEachSampleOnce) {
  const CountingDataset dataset(40);
  LoaderOptions options = evaluation_options(16);
  options.shuffle = true;
  Loader loader(dataset, options);
  loader.start();
  std::multiset<int> first_pixels;
  for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
    const Batch& batch = loader.next();
    for (int64_t row = 0; row < batch.count; ++row)
      first_pixels.insert(static_cast<int>(std::lround(batch.samples.data_as<float>()[row * 6])));
  }
  std::multiset<int> wanted;
  for (int at = 0; at < 40; ++at) wanted.insert(6 * at % 256);
  EXPECT_EQ(first_pixels, wanted);
}

TEST(Loader, EpochsAreShuffledDifferently) {
  const CountingDataset dataset(64);
  const Loader loader(dataset, training_options(64));
  Batch first = loader.load_batch(0, 0), second = loader.load_batch(1, 0);
  second.epoch = 0;
  EXPECT_FALSE(same(first, second));
}

TEST(Loader, WithoutShuffleKeepsTheOrderAndDeliversTheIncompleteBatch) {
  const CountingDataset dataset(10);
  Loader loader(dataset, evaluation_options(4));
  EXPECT_EQ(loader.steps_per_epoch(), 3);
  loader.start(0, 0, 1);
  loader.next();
  loader.next();
  const Batch& last = loader.next();
  EXPECT_EQ(last.count, 2);
  EXPECT_EQ(last.targets.data_as<int32_t>()[0], 8 % 7);
  EXPECT_EQ(last.targets.data_as<int32_t>()[1], 9 % 7);
  EXPECT_FLOAT_EQ(last.samples.data_as<float>()[0], 48);
  for (int64_t at = 2 * 6; at < 4 * 6; ++at) EXPECT_EQ(last.samples.data_as<float>()[at], 0.0f);
}

TEST(Loader, DropLastLeavesTheIncompleteBatchOut) {
  const CountingDataset dataset(10);
  LoaderOptions options = evaluation_options(4);
  options.drop_last = true;
  Loader loader(dataset, options);
  EXPECT_EQ(loader.steps_per_epoch(), 2);
  loader.start();
  for (int step = 0; step < 4; ++step) EXPECT_EQ(loader.next().count, 4);
}

TEST(Loader, BuffersAreAlignedAndReused) {
  const CountingDataset dataset(64);
  Loader loader(dataset, training_options(4));
  loader.start();
  std::set<const void*> buffers;
  for (int step = 0; step < 30; ++step) {
    const void* images = loader.next().samples.data();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(images) % kAlignment, 0u);
    buffers.insert(images);
  }
  EXPECT_LE(buffers.size(), 4u);  // prefetch + the one in use
}

TEST(Loader, ABatchStaysUntouchedUntilTheNextIsAskedFor) {
  const CountingDataset dataset(64);
  Loader loader(dataset, training_options(4, 3));
  loader.start();
  for (int step = 0; step < 10; ++step) {
    const Batch& batch = loader.next();
    const Batch copy{batch.samples.clone(), batch.targets.clone(), batch.count, batch.epoch, batch.step};
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // time for workers to spoil it, if they could
    ASSERT_TRUE(same(batch, copy));
  }
}

TEST(Loader, AnErrorOfAWorkerComesOutOfNext) {
  const FailingDataset dataset;
  for (const int workers : {0, 1, 3}) {
    Loader loader(dataset, evaluation_options(4, workers));
    loader.start();
    EXPECT_EQ(loader.next().count, 4);
    expect_error([&] { loader.next(); }, ErrorKind::io, {"cannot read 'sample-5'"});
    EXPECT_EQ(loader.next().count, 4);  // the next epoch goes on
  }
}

TEST(Loader, AStrangerExceptionNamesTheDataSet) {
  const FailingDataset dataset;
  Loader loader(dataset, evaluation_options(1));
  loader.start(0, 7);
  expect_error([&] { loader.next(); }, ErrorKind::internal, {"[loader] 'failing': odd"});
}

TEST(Loader, StopsCleanlyWhileWorkersAreAhead) {
  const CountingDataset dataset(64);
  for (int round = 0; round < 30; ++round) {
    Loader loader(dataset, training_options(4, 4));
    if (round % 3 != 0) loader.start();
    if (round % 3 == 2) loader.next();
  }
}

TEST(Loader, NextBeforeStartAndPastTheEndAreErrors) {
  const CountingDataset dataset(8);
  Loader loader(dataset, evaluation_options(8));
  expect_error([&] { loader.next(); }, ErrorKind::internal, {"start()"});
  loader.start(0, 0, 1);
  loader.next();
  expect_error([&] { loader.next(); }, ErrorKind::internal, {"past stop_epoch"});
}

TEST(Loader, CountsTheTimeItWaits) {
  const CountingDataset dataset(64);
  Loader loader(dataset, training_options(32, 0));
  EXPECT_EQ(loader.wait_seconds(), 0);
  loader.start();
  loader.next();
  EXPECT_GT(loader.wait_seconds(), 0);
}

TEST(Loader, TheWorkersThatStepsNeed) {
  EXPECT_EQ(Loader::needed_workers(0.1, 1.0, 8), 1);
  EXPECT_EQ(Loader::needed_workers(0.8, 1.0, 8), 1);
  EXPECT_EQ(Loader::needed_workers(0.9, 1.0, 8), 2) << "with a reserve of a fifth";
  EXPECT_EQ(Loader::needed_workers(3.0, 1.0, 8), 4);
  EXPECT_EQ(Loader::needed_workers(100.0, 1.0, 8), 8);
  EXPECT_EQ(Loader::needed_workers(100.0, 1.0, 1), 1);
}

/// Each sample takes a worker a millisecond.
class SlowDataset : public CountingDataset {
 public:
  using CountingDataset::CountingDataset;
  void get(const SampleKey& key, std::span<uint8_t> destination) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CountingDataset::get(key, destination);
  }
};

TEST(Loader, AutomaticWorkersFollowWhatStepsTake) {
  const SlowDataset dataset(64);
  LoaderOptions options = training_options(4, 4);
  options.automatic = true;
  Loader loader(dataset, options);
  loader.start();
  EXPECT_EQ(loader.active_workers(), 4) << "nothing is known yet";
  for (int step = 0; step < 40; ++step) {
    ASSERT_TRUE(same(loader.next(), loader.load_batch(step / 16, step % 16)));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // with load_batch's own 4
  }
  EXPECT_EQ(loader.active_workers(), 1);
  for (int step = 40; step < 80; ++step) loader.next();
  EXPECT_GT(loader.active_workers(), 1) << "steps of no time want all";
}

TEST(Loader, PartsOfABatchMakeTheWhole) {
  const CountingDataset dataset(70'000);  // 6 elements each: six parts
  LoaderOptions options = training_options(65'536, 3);
  options.drop_last = true;
  Loader loader(dataset, options);
  loader.start();
  ASSERT_TRUE(same(loader.next(), loader.load_batch(0, 0)));
  ASSERT_TRUE(same(loader.next(), loader.load_batch(1, 0)));
}

TEST(LoaderErrors, BatchOfNone) {
  const CountingDataset dataset(8);
  expect_error([&] { Loader(dataset, evaluation_options(0)); }, ErrorKind::usage, {"batch 0"});
}

TEST(LoaderErrors, BatchLargerThanTheSetWithDropLast) {
  const CountingDataset dataset(8);
  LoaderOptions options = evaluation_options(9);
  options.drop_last = true;
  expect_error([&] { Loader(dataset, options); }, ErrorKind::usage, {"8 samples", "batch of 9", "smaller batch"});
}

TEST(LoaderErrors, NegativeWorkers) {
  const CountingDataset dataset(8);
  expect_error([&] { Loader(dataset, evaluation_options(4, -1)); }, ErrorKind::usage, {"-1 workers"});
}

TEST(LoaderErrors, StatisticsOfAnotherDataSet) {
  const CountingDataset dataset(8);
  LoaderOptions options = evaluation_options(4);
  options.statistics = {{0, 0, 0}, {1, 1, 1}};
  expect_error([&] { Loader(dataset, options); }, ErrorKind::shape, {"3 channels"});
}

}  // namespace
}  // namespace weft::data
