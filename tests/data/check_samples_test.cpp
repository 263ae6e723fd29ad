// What a data set of somebody's own can get wrong.
#include "weft/data/dataset/check_samples.h"

#include <gtest/gtest.h>

#include "tests/support/files_for_tests.h"
#include "weft/data/load/loader.h"

namespace weft::data {
namespace {

class Constant : public Dataset {
 public:
  explicit Constant(DatasetInfo info, int32_t label = 0) : Dataset(std::move(info)), label_(label) {}
  int64_t size() const override { return 4; }
  void get(const SampleKey&, std::span<uint8_t> sample) const override { std::fill(sample.begin(), sample.end(), 1); }
  void get_target(const SampleKey&, std::span<uint8_t> target) const override { view_as<int32_t>(target)[0] = label_; }

 private:
  int32_t label_;
};

void expect_rejected(const DatasetInfo& info, const std::vector<std::string>& texts) {
  expect_error([&] { check_info(info); }, ErrorKind::usage, texts);
}

TEST(CheckInfo, WantsImagesForBytes) {
  expect_rejected({.name = "flat", .sample_shape = {784}, .classes = 10}, {"'flat'", "(784)", "say f32"});
}

TEST(CheckInfo, WantsClasses) { expect_rejected({.name = "none", .sample_shape = {1, 2, 2}}, {"'none'", "classes"}); }

TEST(CheckInfo, WantsElements) {
  expect_rejected({.name = "empty", .sample_shape = {1, 0, 2}, .classes = 2}, {"'empty'", "(1,0,2)"});
}

TEST(CheckInfo, WantsAsManyValuesAsItAnnounces) {
  expect_rejected({.name = "values",
                   .sample_shape = {1, 2, 2},
                   .classes = 2,
                   .task = "regression",
                   .target_dtype = DType::f32,
                   .target_shape = {3}},
                  {"'values'", "3 values", "classes says 2"});
}

TEST(UnreadableSamples, AreThoseOfDamagedTargetsToo) {
  class DamagedTarget : public Constant {
   public:
    DamagedTarget() : Constant({.name = "odd", .sample_shape = {2}, .classes = 3, .sample_dtype = DType::f32}) {}
    void get_target(const SampleKey& key, std::span<uint8_t> target) const override {
      if (key.index == 2) fail(ErrorKind::data, "target 2 is damaged");
      Constant::get_target(key, target);
    }
  };
  EXPECT_EQ(unreadable_samples(DamagedTarget(), 2), std::vector<std::string>{"target 2 is damaged"});
}

TEST(OwnDataset, AClassThatDoesNotExistIsNamed) {
  const Constant dataset({.name = "odd", .sample_shape = {2}, .classes = 3, .sample_dtype = DType::f32}, 3);
  Loader loader(dataset, {.batch = 2});
  loader.start();
  expect_error([&] { loader.next(); }, ErrorKind::data, {"'odd'", "sample 0 has class 3", "3 classes"});
}

}  // namespace
}  // namespace weft::data
