#include "weft/graph/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/ops/all.h"

namespace weft {
namespace {

using testing::HasSubstr;

class GraphText : public testing::Test {
 protected:
  std::string error_of(const std::string& text) {
    try {
      parse_graph(text, registry_);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  OpRegistry registry_ = ops::make_registry();
};

constexpr const char* kSmall = R"(graph "small" {
  batch %image "image" : f32[2,3,8,8]
  parameter %conv.weight "conv.weight" : f32[4,3,3,3]@Abcd16a
  scalar %learning_rate "learning_rate" : f32[]
  %conv = conv2d(%image, %conv.weight) {padding=[1,1]} : f32[2,4,8,8]@aBcd16b
  %relu = relu(%conv) : f32[2,4,8,8]@aBcd16b
  %loss = reduce_mean(%relu) : f32[]
  %scaled = multiply_scalar(%conv.weight) {value=0.5} : f32[4,3,3,3]@Abcd16a
  output "loss" %loss
  update "conv.weight" %scaled
}
)";

TEST_F(GraphText, PrintsWhatItParsed) { EXPECT_EQ(print_graph(parse_graph(kSmall, registry_)), kSmall); }

TEST_F(GraphText, CommentsAndBlankLinesAreIgnored) {
  const std::string text = "# head\n\ngraph \"g\" { # begin\n  batch %x \"x\" : f32[2]   # a vector\n\n}\n";
  EXPECT_EQ(parse_graph(text, registry_).inputs().size(), 1u);
}

TEST_F(GraphText, QuotesInNamesSurvive) {
  Graph graph(registry_, "a \"quoted\\\" name");
  EXPECT_EQ(parse_graph(print_graph(graph), registry_).name(), graph.name());
}

TEST_F(GraphText, UnknownValueNamesTheLine) {
  EXPECT_THAT(error_of("graph \"g\" {\n  %y = relu(%x) : f32[2]\n}\n"), HasSubstr("line 2"));
}

TEST_F(GraphText, UnknownOpNamesTheNearest) {
  EXPECT_THAT(error_of("graph \"g\" {\n  batch %x \"x\" : f32[2]\n  %y = rellu(%x) : f32[2]\n}\n"),
              HasSubstr("did you mean 'relu'"));
}

TEST_F(GraphText, UnknownAttributeNamesTheNearest) {
  EXPECT_THAT(error_of("graph \"g\" {\n  batch %x \"x\" : f32[2]\n  %y = softmax(%x) {axs=0} : f32[2]\n}\n"),
              HasSubstr("did you mean 'axis'"));
}

TEST_F(GraphText, WrittenTypeMustBeTheInferredOne) {
  EXPECT_THAT(error_of("graph \"g\" {\n  batch %x \"x\" : f32[2]\n  %y = relu(%x) : f32[3]\n}\n"),
              HasSubstr("f32[2], which the operands give"));
}

TEST_F(GraphText, MissingBraceIsAnError) {
  EXPECT_THAT(error_of("graph \"g\" {\n"), HasSubstr("closing brace is missing"));
}

TEST_F(GraphText, NameTakenTwiceIsAnError) {
  EXPECT_THAT(error_of("graph \"g\" {\n  batch %x \"x\" : f32[2]\n  %x = relu(%x) : f32[2]\n}\n"),
              HasSubstr("%x is taken"));
}

TEST_F(GraphText, TextAfterALineIsAnError) {
  EXPECT_THAT(error_of("graph \"g\" {\n  batch %x \"x\" : f32[2] more\n}\n"), HasSubstr("the end of the line"));
}

TEST_F(GraphText, UnterminatedStringIsAnError) { EXPECT_THAT(error_of("graph \"g {\n"), HasSubstr("closing quote")); }

TEST_F(GraphText, BadLayoutIsAnError) {
  EXPECT_THAT(error_of("graph \"g\" {\n  batch %x \"x\" : f32[2,3]@abc\n}\n"), HasSubstr("no layout"));
}

}  // namespace
}  // namespace weft
