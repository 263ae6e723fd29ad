#include "weft/graph/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "weft/base/rng.h"

namespace weft {
namespace {

using test::error_of;

using testing::HasSubstr;

TEST(Expression, EqualPolynomialsAreEqual) {
  const Expression n = Expression::symbol("N"), t = Expression::symbol("T");
  EXPECT_EQ((n + t) * (n - t), n * n - t * t);
  EXPECT_EQ(n + n, n * 2);
  EXPECT_EQ(n - n, Expression(0));
  EXPECT_EQ(t * n, n * t);
  EXPECT_FALSE(n == t);
}

TEST(Expression, PrintsLongProductsFirst) {
  EXPECT_EQ(to_string(Expression::parse("1 + T*2")), "2*T+1");
  EXPECT_EQ(to_string(Expression::parse("W*H*N - N + 0")), "H*N*W-N");
  EXPECT_EQ(to_string(Expression::parse("-(T - 3)")), "-T+3");
  EXPECT_EQ(to_string(Expression(-7)), "-7");
  EXPECT_EQ(to_string(Expression(0)), "0");
}

// Random expressions, whose values are computed beside them.
TEST(Expression, ParsesBackAndEvaluates) {
  const SymbolBindings bindings{{"N", 5}, {"T", 7}, {"width", 3}};
  const std::vector<std::string> names{"N", "T", "width"};
  RandomStream stream(1);
  for (int round = 0; round < 300; ++round) {
    Expression expression = 1;
    int64_t value = 1;
    for (int step = 0; step < 6; ++step) {
      const std::string& name = names[stream.below(3)];
      const auto number = static_cast<int64_t>(stream.below(9)) - 4;
      const bool is_name = stream.below(2) == 0;
      const Expression operand = is_name ? Expression::symbol(name) : Expression(number);
      const int64_t operand_value = is_name ? bindings.at(name) : number;
      switch (stream.below(3)) {
        case 0:
          expression = expression + operand;
          value += operand_value;
          break;
        case 1:
          expression = expression - operand;
          value -= operand_value;
          break;
        default:
          expression = expression * operand;
          value *= operand_value;
      }
    }
    EXPECT_EQ(expression.evaluate(bindings), value) << to_string(expression);
    EXPECT_EQ(Expression::parse(to_string(expression)), expression) << to_string(expression);
  }
}

TEST(Expression, DividesByProducts) {
  const Expression whole = Expression::parse("6*N*T+4*N");
  EXPECT_EQ(whole.divided_by(Expression::parse("2*N")), Expression::parse("3*T+2"));
  EXPECT_EQ(whole.divided_by(Expression::parse("4*N")), std::nullopt);
  EXPECT_EQ(whole.divided_by(Expression::parse("T")), std::nullopt);
  EXPECT_EQ(whole.divided_by(Expression::parse("N+1")), std::nullopt);
  EXPECT_EQ(Expression(12).divided_by(4), Expression(3));
  EXPECT_EQ(Expression(12).divided_by(0), std::nullopt);
}

TEST(Expression, KnowsItsSymbolsAndNumbers) {
  EXPECT_EQ(Expression::parse("2*T+N*T").symbols(), (std::set<std::string>{"N", "T"}));
  EXPECT_EQ(Expression::parse("2*3+1").constant(), 7);
  EXPECT_EQ(Expression::parse("T-T").constant(), 0);
  EXPECT_EQ(Expression::symbol("T").constant(), std::nullopt);
}

TEST(Expression, NamesTheSymbolWithoutAValue) {
  EXPECT_THAT(error_of([] {
                Expression::parse("2*T+1").evaluate({{"N", 3}});
              }),
              testing::AllOf(HasSubstr("symbol 'T' in 2*T+1"), HasSubstr("bind it, as in T=32")));
}

TEST(Expression, OverflowIsAnError) {
  const Expression huge = INT64_MAX;
  EXPECT_THAT(error_of([&] { huge + 1; }), HasSubstr("more than 64 bits"));
  EXPECT_THAT(error_of([&] { (Expression::symbol("N") * huge).evaluate({{"N", 2}}); }), HasSubstr("more than 64 bits"));
}

TEST(Expression, ProductsOfManySumsAreAnError) {
  std::string text = "(a+b+c+d)";
  for (int i = 0; i < 40; ++i) text += "*(a+b+c+d)";
  EXPECT_THAT(error_of([&] { Expression::parse(text); }), HasSubstr("is too long"));
}

TEST(Expression, MalformedTextIsAnError) {
  for (const char* text : {"", "2*", "+N", "N T", "(N", "3N", "N/2", "2**N", "N)", "?"})
    EXPECT_THAT(error_of([&] { Expression::parse(text); }), HasSubstr("is no dimension")) << text;
  EXPECT_THAT(error_of([] { Expression::symbol("2N"); }), HasSubstr("'2N' is no name of a symbol"));
  EXPECT_THAT(error_of([] { parse_expressions("N,"); }), HasSubstr("ends in a comma"));
}

TEST(SymbolBindings, AreReadFromText) {
  SymbolBindings bindings;
  add_binding(bindings, "N=32");
  add_binding(bindings, "T=128");
  add_binding(bindings, "N=32");
  EXPECT_EQ(bindings, (SymbolBindings{{"N", 32}, {"T", 128}}));
}

TEST(SymbolBindings, AreGivenOnce) {
  SymbolBindings bindings{{"N", 32}};
  EXPECT_THAT(error_of([&] { add_binding(bindings, "N=16"); }), HasSubstr("symbol 'N' is 32 and 16 at once"));
  for (const char* text : {"N", "N=", "N=x", "=3", "N=3x", "2N=3"})
    EXPECT_NE(error_of([&] { add_binding(bindings, text); }), "no error") << text;
}

}  // namespace
}  // namespace weft
