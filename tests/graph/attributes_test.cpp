#include "weft/graph/attributes.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"

namespace weft {
namespace {

class AttributeRoundTrip : public testing::TestWithParam<AttributeValue> {};

TEST_P(AttributeRoundTrip, ParsesBackToTheSameBits) {
  EXPECT_EQ(parse_attribute_value(to_string(GetParam())), GetParam()) << to_string(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Values, AttributeRoundTrip,
                         testing::Values(AttributeValue(true), AttributeValue(int64_t{-7}), AttributeValue(0.1),
                                         AttributeValue(1e-30), AttributeValue(-1e30), AttributeValue(3.0),
                                         AttributeValue(std::string("a \"b\" \\ c")),
                                         AttributeValue(std::vector<int64_t>{}),
                                         AttributeValue(std::vector<int64_t>{1, -2, 3})));

TEST(Attributes, RealsKeepTheirKind) { EXPECT_EQ(to_string(AttributeValue(2.0)), "2.0"); }

TEST(Attributes, GarbageIsAnError) { EXPECT_THROW(parse_attribute_value("1x"), Error); }

TEST(Attributes, UnclosedListIsAnError) { EXPECT_THROW(parse_attribute_value("[1,2"), Error); }

TEST(Attributes, WrongKindIsAnInternalError) {
  const Attributes attributes{{"axis", int64_t{1}}};
  EXPECT_THROW(attributes.text("axis"), Error);
  EXPECT_THROW(attributes.integer("axes"), Error);
}

}  // namespace
}  // namespace weft
