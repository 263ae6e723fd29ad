// Damaged samples of a run on several ranks.
#include "weft/program/damage_on_ranks.h"

#include <gtest/gtest.h>

#include "weft/comm/local/local_group.h"

namespace weft::program {
namespace {

using Messages = std::vector<std::string>;

class Damaged : public data::Dataset {
 public:
  explicit Damaged(std::vector<data::DamagedSample> found) : Dataset({}), found_(std::move(found)) {}
  int64_t size() const override { return 10; }
  void get(const data::SampleKey&, std::span<uint8_t>) const override {}
  void get_target(const data::SampleKey&, std::span<uint8_t>) const override {}
  std::vector<data::DamagedSample> list_damaged() const override { return found_; }

 private:
  std::vector<data::DamagedSample> found_;
};

RunData data_with(std::vector<data::DamagedSample> training, std::vector<data::DamagedSample> test) {
  RunData data;
  data.training = std::make_unique<Damaged>(std::move(training));
  data.test = std::make_unique<Damaged>(std::move(test));
  return data;
}

TEST(DamageOnRanks, AProcessThatIsAloneHasItsOwn) {
  EXPECT_EQ(damaged_on_all_ranks(data_with({{2, "c"}, {7, "h"}}, {{2, "test c"}}), nullptr),
            (Messages{"c", "h", "test c"}));
}

TEST(DamageOnRanks, WhatSeveralHaveMetCountsOnce) {
  comm::run_ranks({"host", "host"}, [](comm::Communicator& ranks) {
    const bool first = ranks.rank() == 0;
    const RunData data = first ? data_with({{2, "c"}, {7, "h"}}, {{2, "test c"}})
                               : data_with({{1, "b"}, {7, "h, said otherwise"}}, {{2, "test c"}});
    EXPECT_EQ(damaged_on_all_ranks(data, &ranks), (Messages{"b", "c", "h", "test c"}));
  });
}

TEST(DamageOnRanks, WithoutDamageThereIsNone) {
  comm::run_ranks({"host", "host"}, [](comm::Communicator& ranks) {
    EXPECT_EQ(damaged_on_all_ranks(data_with({}, {}), &ranks), Messages{});
  });
}

}  // namespace
}  // namespace weft::program
