// What a search may choose: ranges, choices and conditions.
#include "weft/tune/space/space.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"
#include "weft/tune/space/random.h"

namespace weft::tune {
namespace {

using test::error_of;

KeyValue text(const char* value) { return std::string(value); }

std::string message_of(std::vector<Dimension> dimensions) {
  return error_of([&] { Space space(std::move(dimensions)); });
}

TEST(Space, NamesARangeThatIsUpsideDown) {
  EXPECT_EQ(message_of({real("x", 2, 1)}), "x: the range from 2 to 1 is upside down; exchange its ends");
}

TEST(Space, NamesALogarithmOfZero) {
  EXPECT_EQ(message_of({log_real("rate", 0, 1)}),
            "rate: the logarithm of 0 does not exist; begin the range above 0, or leave log away");
}

TEST(Space, NamesARangeWithoutAnEnd) {
  EXPECT_NE(message_of({real("x", 0, INFINITY)}).find("has no end"), std::string::npos);
}

TEST(Space, NamesAChoiceThatStandsThereTwice) {
  EXPECT_EQ(message_of({choice("name", {text("sgd"), text("sgd")})}), "name: the choice 'sgd' stands there twice");
}

TEST(Space, NamesADoubledRange) {
  EXPECT_EQ(message_of({real("x", 0, 1), real("x", 0, 1)}), "x: there are two ranges for it; leave one away");
}

TEST(Space, NamesTheNearestParentOfACondition) {
  EXPECT_EQ(message_of({choice("optimizer", {text("sgd")}), real("momentum", 0, 1).when("optimiser", {text("sgd")})}),
            "momentum: its condition names 'optimiser', which is not searched; did you mean 'optimizer'?");
}

TEST(Space, NamesAValueThatIsNoChoiceOfTheParent) {
  EXPECT_EQ(message_of({choice("optimizer", {text("sgd")}), real("momentum", 0, 1).when("optimizer", {text("adam")})}),
            "momentum: its condition wants 'adam' of 'optimizer', which is none of its choices");
}

TEST(Space, NamesConditionsThatDependOnEachOther) {
  EXPECT_NE(
      message_of({choice("a", {text("x")}).when("b", {text("x")}), choice("b", {text("x")}).when("a", {text("x")})})
          .find("depends on itself"),
      std::string::npos);
}

TEST(Space, ParentsComeFirst) {
  const Space space(
      {real("momentum", 0, 1).when("optimizer", {text("sgd")}), choice("optimizer", {text("sgd"), text("adam")})});
  EXPECT_EQ(space[0].name, "optimizer");
  EXPECT_EQ(space[1].name, "momentum");
}

TEST(Space, APointLacksWhatItsConditionsRuleOut) {
  const Space space(
      {choice("optimizer", {text("sgd"), text("adam")}), real("momentum", 0, 1).when("optimizer", {text("sgd")})});
  EXPECT_TRUE(space.from_unit({0.2, 0.5})[1].has_value());
  EXPECT_FALSE(space.from_unit({0.8, 0.5})[1].has_value());
  EXPECT_FALSE(has_value(space.values(space.from_unit({0.8, 0.5})), "momentum"));
}

TEST(Space, ConditionsOfConditionsRuleOutToo) {
  const Space space({choice("a", {text("x"), text("y")}), choice("b", {text("x"), text("y")}).when("a", {text("x")}),
                     real("c", 0, 1).when("b", {text("x")})});
  const Point point = space.from_unit({0.9, 0.1, 0.5});  // a = y
  EXPECT_FALSE(point[1].has_value());
  EXPECT_FALSE(point[2].has_value());
}

TEST(Space, UnitCoordinatesGoThereAndBack) {
  const Space space({real("a", -3, 7), log_real("b", 1e-6, 10), integer("c", 3, 90, 7), log_integer("d", 1, 1000),
                     choice("e", {text("x"), text("y"), text("z")})});
  Random random(1, 1);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> units(space.size());
    for (double& unit : units) unit = random.uniform();
    const Point point = space.from_unit(units);
    for (size_t index = 0; index < space.size(); ++index) {
      const double again = space.from_unit(index, space.to_unit(index, *point[index]));
      EXPECT_NEAR(again, *point[index], 1e-9 * std::abs(*point[index])) << space[index].name;
    }
    EXPECT_NEAR(space.to_unit(1, *point[1]), units[1], 1e-12);
  }
}

TEST(Space, EveryIntegerIsAsLikely) {
  const Space space({integer("n", 2, 11, 3)});  // 2, 5, 8, 11
  std::vector<int> counts(4);
  for (int step = 0; step < 4000; ++step)
    ++counts[static_cast<size_t>((*space.from_unit({(step + 0.5) / 4000})[0] - 2) / 3)];
  for (const int count : counts) EXPECT_EQ(count, 1000);
}

TEST(Space, TheEndOfARangeIsTheLastStep) {
  const Space space({integer("n", 16, 100, 16)});
  EXPECT_EQ(space[0].high, 96);
  EXPECT_EQ(space.count(0), 6u);
  EXPECT_EQ(*space.from_unit({1.0})[0], 96);
}

TEST(Space, LogarithmicRangesSpendAsMuchOnEachDecade) {
  const Space space({log_real("rate", 1e-4, 1)});
  EXPECT_NEAR(*space.from_unit({0.25})[0], 1e-3, 1e-15);
  EXPECT_NEAR(*space.from_unit({0.75})[0], 0.1, 1e-13);
}

TEST(Space, ValuesAndPointsAreTheSame) {
  const Space space({choice("flag", {true, false}), integer("n", 1, 5), real("x", 0, 1).when("flag", {true})});
  for (const double flag : {0.2, 0.8}) {
    const Point point = space.from_unit({flag, 0.5, 0.25});
    EXPECT_EQ(space.point(parse_values(print_values(space.values(point)))), point);
  }
}

TEST(Space, RefusesAPointOfAnotherSpace) {
  const Space space({integer("n", 1, 5)});
  EXPECT_EQ(error_of([&] { space.point({{"m", int64_t{1}}}); }), "'m' is no dimension of this space");
  EXPECT_EQ(error_of([&] { space.point({{"n", int64_t{9}}}); }), "9 is outside of the range of 'n', 1 to 5");
  EXPECT_EQ(error_of([&] { space.point({}); }), "'n' has no value");
}

TEST(Space, JsonGivesAnEqualSpace) {
  const Space space({choice("kind", {text("a"), int64_t{2}, true, 0.5}),
                     log_integer("n", 1, 64).when("kind", {int64_t{2}}), integer("m", 0, 10, 5), real("x", 0.1, 0.3)});
  const Space again = parse_space(print_space(space));
  EXPECT_EQ(again.dimensions(), space.dimensions());
  EXPECT_EQ(print_space(again), print_space(space));
}

TEST(Space, CountsItsPoints) {
  EXPECT_EQ(Space({integer("n", 1, 5), choice("c", {true, false})}).count(), 10u);
  EXPECT_EQ(Space({integer("n", 1, 5), real("x", 0, 1)}).count(), std::nullopt);
}

}  // namespace
}  // namespace weft::tune
