// Connectionist temporal classification against PyTorch, behind a log_softmax as it is used.
#include <cmath>

#include "tests/ops/values_fixture.h"

namespace weft::ops {
namespace {

class Ctc : public ValuesTest {
 protected:
  ValueId loss(const std::vector<int32_t>& targets, const std::vector<int32_t>& input_lengths,
               const std::vector<int32_t>& target_lengths, const CtcOptions& options = {}) {
    return ctc_loss(
        graph_, log_softmax(graph_, x_),
        {given(integers({3, 3}, targets)), given(integers({3}, input_lengths)), given(integers({3}, target_lengths))},
        options);
  }
  float first(ValueId losses) const { return value_of(losses).data_as<float>()[0]; }

  /// Logits [T,3,3] of 1 for the class of each step and sequence, else 0.
  static Tensor one_hot_steps(const std::vector<std::vector<int>>& classes) {
    std::vector<float> values;
    for (const auto& step : classes)
      for (const int wanted : step)
        for (int c = 0; c < 3; ++c) values.push_back(c == wanted ? 1.0f : 0.0f);
    return floats({static_cast<int64_t>(classes.size()), 3, 3}, values);
  }

  ValueId x_ = given(ramp({6, 3, 4}));
};

// T = torch.tensor; x = leaf(ramp(6, 3, 4))
// y = F.ctc_loss(F.log_softmax(x, -1), T([[1, 2, 2], [3, 1, 0], [2, 0, 0]]), T([6, 4, 5]), T([3, 2, 1]),
//                reduction="none")
TEST_F(Ctc, SequencesOfSeveralLengths) {
  const ValueId y = loss({1, 2, 2, 3, 1, 0, 2, 0, 0}, {6, 4, 5}, {3, 2, 1});
  expect_value(y, {3}, {6.229078, 3.6951665, 5.1467219});
  expect_gradients(y, {x_},
                   {{0.1575137,
                     0.9748585,
                     -0.9973901,
                     -0.1349821,
                     0.04707283,
                     -0.1319814,
                     -0.01786174,
                     0.1027703,
                     -0.05657267,
                     0.1905047,
                     -0.2239201,
                     0.08998805,
                     0.3016227,
                     0.1533445,
                     0.3044801,
                     -0.7594474,
                     0.03463107,
                     -0.01192709,
                     -0.1662317,
                     0.1435277,
                     -0.250811,
                     0.04155949,
                     -0.2970467,
                     0.5062982,
                     0.3405679,
                     -0.4842518,
                     0.5177454,
                     -0.3740615,
                     0.02645371,
                     0.01721053,
                     -0.03626422,
                     -0.007400019,
                     -0.6205598,
                     0.5279255,
                     -0.1567401,
                     0.2493744,
                     -0.1320747,
                     -0.1214401,
                     0.3108791,
                     -0.05736425,
                     -0.009461641,
                     0.08966697,
                     -0.01786174,
                     -0.06234359,
                     -0.2807594,
                     0.08096009,
                     0.1615565,
                     0.03824284,
                     0.9680736,
                     -0.7918883,
                     0.1978762,
                     -0.3740615,
                     0,
                     0,
                     0,
                     0,
                     -0.7912979,
                     0.5279255,
                     0.01399802,
                     0.2493744,
                     -0.05131097,
                     -0.2857571,
                     0.4720501,
                     -0.1349821,
                     0,
                     0,
                     0,
                     0,
                     0,
                     0,
                     0,
                     0}});
}

// y = F.ctc_loss(F.log_softmax(x, -1), T([[0, 2, 2], [0, 1, 0], [2, 0, 0]]), T([6, 1, 5]), T([3, 2, 0]), blank=3,
//                zero_infinity=True, reduction="none")
TEST_F(Ctc, AnotherBlankAnInputTooShortAndAnEmptyTarget) {
  const ValueId y = loss({0, 2, 2, 0, 1, 0, 2, 0, 0}, {6, 1, 5}, {3, 2, 0}, {.blank = 3, .zero_infinity = true});
  expect_value(y, {3}, {6.2904079, 0, 9.130107});
  expect_gradients(
      y, {x_},
      {{0.6489259,   -0.2857571,  -0.9973901,  0.6342213,    0, 0, 0, 0, 0.05458051, 0.1905047,  0.6649267,  -0.910012,
        0.3554293,   -0.06233923, -0.1443955,  -0.1486946,   0, 0, 0, 0, 0.3070854,  0.04155949, 0.1450569,  -0.4937018,
        0.2889168,   -0.7918883,  0.1482009,   0.3547706,    0, 0, 0, 0, 0.1512532,  0.5279255,  0.07144695, -0.7506256,
        -0.8973279,  -0.1214401,  1.023871,    -0.005103013, 0, 0, 0, 0, 0.5982186,  0.08096009, 0.2825785,  -0.9617572,
        -0.2268798,  -0.7918883,  -0.06999724, 1.088765,     0, 0, 0, 0, 0.1512532,  0.5279255,  0.07144695, -0.7506256,
        -0.08187077, -0.2857571,  0.4880493,   -0.1204215,   0, 0, 0, 0, 0,          0,          0,          0}});
}

TEST_F(Ctc, WithoutLengthsAllStepsCountAndTargetsEndAtTheirPadding) {
  const ValueId rows = log_softmax(graph_, x_);
  const Tensor given_lengths = value_of(loss({1, 2, 2, 3, 1, 0, 2, 0, 0}, {6, 6, 6}, {3, 2, 1}));
  const Tensor padded = value_of(ctc_loss(graph_, rows, {given(integers({3, 3}, {1, 2, 2, 3, 1, 0, 2, -1, 3}))}));
  reference_tests::expect_values(padded, {given_lengths.data_as<float>()[0], given_lengths.data_as<float>()[1],
                                          given_lengths.data_as<float>()[2]});
}

TEST_F(Ctc, CountsSequencesWhoseBestPathIsTheTarget) {
  // Largest classes by step: 1 1 0 1 2 | 0 2 2 2 0 | 0 0 0 0 0.
  const ValueId logits = given(one_hot_steps({{1, 0, 0}, {1, 2, 0}, {0, 2, 0}, {1, 2, 0}, {2, 0, 0}}));
  const auto count = [&](const std::vector<int32_t>& targets) {
    return value_of(ctc_count_correct(graph_, logits, {given(integers({3, 3}, targets))})).data_as<float>()[0];
  };
  EXPECT_EQ(count({1, 1, 2, 2, 0, 0, 0, 0, 0}), 3);
  EXPECT_EQ(count({1, 2, 0, 2, 0, 0, 0, 0, 0}), 2);
  EXPECT_EQ(count({1, 1, 2, 2, 2, 0, 1, 0, 0}), 1);
  EXPECT_EQ(count({1, 1, 0, 2, 1, 0, 2, 0, 0}), 0);
}

TEST_F(Ctc, AnInputTooShortHasAnInfiniteLoss) {
  // 1, 2, 2 wants four steps: a blank has to part the equal labels.
  EXPECT_EQ(first(loss({1, 2, 2, 3, 1, 0, 2, 0, 0}, {3, 4, 5}, {3, 2, 1})), INFINITY);
  EXPECT_LT(first(loss({1, 2, 2, 3, 1, 0, 2, 0, 0}, {4, 4, 5}, {3, 2, 1})), 100);
}

TEST_F(Ctc, LabelsAndLengthsThatDoNotFitGiveNotANumber) {
  EXPECT_TRUE(std::isnan(first(loss({1, 4, 2, 3, 1, 0, 2, 0, 0}, {6, 4, 5}, {3, 2, 1})))) << "no such class";
  EXPECT_TRUE(std::isnan(first(loss({1, 0, 2, 3, 1, 0, 2, 0, 0}, {6, 4, 5}, {3, 2, 1})))) << "the blank";
  EXPECT_TRUE(std::isnan(first(loss({1, 2, 2, 3, 1, 0, 2, 0, 0}, {7, 4, 5}, {3, 2, 1})))) << "seven steps";
  EXPECT_TRUE(std::isnan(first(loss({1, 2, 2, 3, 1, 0, 2, 0, 0}, {6, 4, 5}, {4, 2, 1})))) << "four labels";
}

TEST_F(Ctc, WantsOneTargetPerSequence) {
  const ValueId targets = input("targets", {4, 3}, DType::i32), lengths = input("lengths", {3}, DType::i32);
  EXPECT_EQ(shape_error([&] {
              ctc_loss(graph_, x_, {targets, lengths, lengths}, {}, "loss");
            }),
            "[ctc_loss] 'loss': targets wants one entry for each of the 3 sequences of 'x0' (6,3,4) (steps, batch, "
            "classes), got 'targets' (4,3)");
}

TEST_F(Ctc, BlankThatIsNoClass) {
  const ValueId targets = input("targets", {3, 3}, DType::i32), lengths = input("lengths", {3}, DType::i32);
  EXPECT_EQ(shape_error([&] {
              ctc_loss(graph_, x_, {targets, lengths, lengths}, {.blank = 4}, "loss");
            }),
            "[ctc_loss] 'loss': blank 4 is none of the 4 classes of 'x0' (6,3,4); give a number from 0 to 3");
}

}  // namespace
}  // namespace weft::ops
