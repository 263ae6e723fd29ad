// The estimate of what a file costs a step: hand-made cases at rates that make whole seconds.

#include "weft/device/offload_timeline.h"

#include <gtest/gtest.h>

#include "weft/device/offload_file.h"

namespace weft {
namespace {

constexpr int64_t kPiece = kOffloadPieceBytes;
constexpr int64_t kWindowPieces = kOffloadWindowBytes / kPiece;

/// The disk moves a piece in 4 seconds; a copy into the cache takes 1, a copy out of it on both threads 0.5.
constexpr OffloadRates kRates{
    .disk = kPiece / 4.0, .into_cache = kPiece / 1.0, .out_of_cache_per_thread = kPiece / 1.0};

TEST(OffloadTimeline, WhatTheCacheHoldsCostsTwoCopies) {
  OffloadTimeline timeline(kRates, 2);
  timeline.store(0, 2 * kPiece);
  timeline.compute(3);
  timeline.load(0);
  EXPECT_DOUBLE_EQ(timeline.transfer_seconds(), 2 * 1.0 + 2 * 0.5);
  EXPECT_DOUBLE_EQ(timeline.waiting_seconds(), 0);
  EXPECT_DOUBLE_EQ(timeline.now(), 3 + 3);
}

TEST(OffloadTimeline, AFullWindowWaitsForTheOldestPiece) {
  OffloadTimeline timeline(kRates, 1);
  // Pieces are copied at 1, 2, ... and lie on the disk at 5, 9, ...: the window takes one more than it holds.
  timeline.store(0, (kWindowPieces + 1) * kPiece);
  EXPECT_DOUBLE_EQ(timeline.waiting_seconds(), 0);
  EXPECT_DOUBLE_EQ(timeline.now(), kWindowPieces + 1);
  timeline.store(1, kPiece);
  EXPECT_DOUBLE_EQ(timeline.waiting_seconds(), 0);  // at 10: the first piece was there at 5
  timeline.store(2, kPiece);
  EXPECT_DOUBLE_EQ(timeline.waiting_seconds(), 0);  // at 11: the second at 9
  timeline.store(3, kPiece);
  EXPECT_DOUBLE_EQ(timeline.waiting_seconds(), 1);  // at 12: the third at 13
}

TEST(OffloadTimeline, ComputingHidesTheDisk) {
  OffloadTimeline timeline(kRates, 1);
  for (size_t value = 0; value < 20; ++value) {
    timeline.store(value, kPiece);
    timeline.compute(4);
  }
  EXPECT_DOUBLE_EQ(timeline.waiting_seconds(), 0);
  EXPECT_DOUBLE_EQ(timeline.transfer_seconds(), 20);
}

/// Two values of a piece that have left the cache, on a disk that is idle.
OffloadTimeline with_two_on_the_disk() {
  OffloadTimeline timeline(kRates, 1);
  for (size_t value = 0; value < static_cast<size_t>(kWindowPieces) + 3; ++value) timeline.store(value, kPiece);
  timeline.compute(1000);
  return timeline;
}

TEST(OffloadTimeline, WhatWasNotAskedForIsWaitedFor) {
  OffloadTimeline timeline = with_two_on_the_disk();
  const double before = timeline.transfer_seconds();
  timeline.load(0);
  EXPECT_DOUBLE_EQ(timeline.transfer_seconds() - before, 4 + 1);
}

TEST(OffloadTimeline, WhatWasAskedForInTimeIsOnlyCopied) {
  OffloadTimeline timeline = with_two_on_the_disk();
  const double before = timeline.transfer_seconds();
  timeline.ask_ahead(0);
  timeline.ask_ahead(1);
  timeline.compute(6);
  timeline.load(0);  // read by 4
  EXPECT_DOUBLE_EQ(timeline.transfer_seconds() - before, 1);
  timeline.load(1);  // at 7, read by 8
  EXPECT_DOUBLE_EQ(timeline.transfer_seconds() - before, 1 + 1 + 1);
}

TEST(OffloadTimeline, AFasterDiskNeverTakesLonger) {
  double last = 1e300;
  for (const double faster : {1.0, 2.0, 4.0, 1000.0}) {
    OffloadRates rates = kRates;
    rates.disk *= faster;
    OffloadTimeline timeline(rates, 1);
    for (size_t value = 0; value < 30; ++value) timeline.store(value, kPiece);
    for (size_t value = 30; value-- > 0;) timeline.load(value);
    EXPECT_LE(timeline.now(), last);
    last = timeline.now();
  }
  EXPECT_NEAR(last, 60, 0.5);  // the copies, and the first piece's way
}

}  // namespace
}  // namespace weft
