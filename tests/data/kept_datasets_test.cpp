#include "weft/data/kept_datasets.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/error_of.h"

namespace weft::data {
namespace {

DatasetInfo info_of(bool is_decoded) {
  DatasetInfo info{"counted", {1, 1, 1}, 2, {}};
  info.decoded = is_decoded;
  return info;
}

/// A kind, whose `opened` counts; each pixel of its data says how many were opened before. "pictures" are decoded.
std::vector<DatasetKind> counting(int& opened) {
  return keep_datasets(
      {{.name = "counted",
        .form = "counted:ANY",
        .summary = "a pixel",
        .open = [&opened](const DataSpec& spec, Split, const std::string&) -> std::unique_ptr<Dataset> {
          if (spec.argument == "missing") fail(ErrorKind::io, "there is no 'missing'");
          const auto pixel = static_cast<uint8_t>(opened++);
          return std::make_unique<MemoryDataset>(info_of(spec.argument == "pictures"), std::vector<uint8_t>{pixel},
                                                 std::vector<uint8_t>{1});
        }}});
}

int pixel_of(const Dataset& dataset) {
  uint8_t pixel = 0;
  dataset.get({0, 0}, {&pixel, 1});
  return pixel;
}

TEST(KeptDatasets, TheSameSplitIsOpenedOnce) {
  int opened = 0;
  const std::vector<DatasetKind> kinds = counting(opened);
  for (int time = 0; time < 3; ++time) {
    const auto dataset = open_dataset(kinds, "counted:one", Split::train);
    EXPECT_EQ(pixel_of(*dataset), 0);
    EXPECT_EQ(dataset->label(0), 1);
    EXPECT_EQ(dataset->info().name, "counted");
  }
  EXPECT_EQ(opened, 1);
}

TEST(KeptDatasets, OtherSpecsSplitsAndEncodingsAreOthers) {
  int opened = 0;
  const std::vector<DatasetKind> kinds = counting(opened);
  EXPECT_EQ(pixel_of(*open_dataset(kinds, "counted:one", Split::train)), 0);
  EXPECT_EQ(pixel_of(*open_dataset(kinds, "counted:two", Split::train)), 1);
  EXPECT_EQ(pixel_of(*open_dataset(kinds, "counted:one", Split::test)), 2);
  EXPECT_EQ(pixel_of(*open_dataset(kinds, "counted:one", Split::train, "{}")), 3);
  EXPECT_EQ(pixel_of(*open_dataset(kinds, "counted:one", Split::train)), 0);
}

TEST(KeptDatasets, WhatWasNotAskedForLongIsLetGo) {
  int opened = 0;
  const std::vector<DatasetKind> kinds = counting(opened);
  open_dataset(kinds, "counted:often", Split::train);
  for (int other = 0; other < 10; ++other) {
    open_dataset(kinds, "counted:" + std::to_string(other), Split::train);
    open_dataset(kinds, "counted:often", Split::train);
  }
  EXPECT_EQ(opened, 11);
  open_dataset(kinds, "counted:0", Split::train);
  EXPECT_EQ(opened, 12);
}

TEST(KeptDatasets, PicturesAreOpenedAnew) {
  int opened = 0;
  const std::vector<DatasetKind> kinds = counting(opened);
  for (int time = 0; time < 3; ++time) open_dataset(kinds, "counted:pictures", Split::train);
  EXPECT_EQ(opened, 3);
}

TEST(KeptDatasets, WhatCannotBeOpenedIsTriedAgain) {
  int opened = 0;
  const std::vector<DatasetKind> kinds = counting(opened);
  for (int time = 0; time < 2; ++time)
    EXPECT_NE(
        test::error_of([&] { open_dataset(kinds, "counted:missing", Split::train); }).find("there is no 'missing'"),
        std::string::npos);
}

}  // namespace
}  // namespace weft::data
