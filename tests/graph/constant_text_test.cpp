#include "weft/graph/constant_text.h"

#include <limits>

#include "tests/support/any_dtype.h"
#include "tests/support/files_for_tests.h"
#include "weft/graph/constant_node.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

class ConstantText : public FilesTest {
 protected:
  OpRegistry registry_ = ops::make_registry();
};

Constant integers_of(DType dtype, const std::vector<uint64_t>& bits) {
  Tensor tensor(dtype, {static_cast<int64_t>(bits.size())});
  for (size_t i = 0; i < bits.size(); ++i) any_dtype::set_bits(tensor, static_cast<int64_t>(i), bits[i]);
  return Constant(std::move(tensor));
}

TEST_F(ConstantText, FewElementsStandInTheText) {
  EXPECT_EQ(print_constant(integers_of(DType::i64, {3, ~uint64_t{0}, INT64_MAX})), "<i64[3] 3,-1,9223372036854775807>");
  EXPECT_EQ(print_constant(integers_of(DType::u64, {~uint64_t{0}})), "<u64[1] 18446744073709551615>");
  EXPECT_EQ(print_constant(integers_of(DType::i4, {8, 7, 0})), "<i4[3] -8,7,0>");
  EXPECT_EQ(print_constant(integers_of(DType::boolean, {1, 0})), "<bool[2] 1,0>");
  EXPECT_EQ(print_constant(Constant(Tensor::of({2}, std::vector<float>{0.1f, -3}))), "<f32[2] 0.1,-3>");
  EXPECT_EQ(print_constant(Constant(Tensor(DType::f32, {0}))), "<f32[0]>");
}

TEST_F(ConstantText, FewElementsOfEveryTypeParseBack) {
  for (const DType dtype : all_dtypes())
    for (uint64_t key = 0; key < 40; ++key) {
      const Constant constant(any_dtype::draw_bits({dtype, {3, 4}, {}}, key));
      const std::string text = print_constant(constant);
      EXPECT_EQ(parse_constant(text, find_constants([&] {
                                 Graph graph(registry_);
                                 ops::constant_tensor(graph, constant);
                                 return graph;
                               }())),
                constant)
          << text;
    }
}

TEST_F(ConstantText, LargeOnesAreInAFileBesideTheText) {
  Graph graph(registry_, "g");
  for (const DType dtype : all_dtypes())
    graph.add_output(std::string(name_of(dtype)),
                     ops::constant_tensor(graph, Constant(any_dtype::draw_bits({dtype, {7, 5}, {}}, 1))));
  const std::string text = print_graph(graph);
  EXPECT_NE(text.find("data=<i4[7,5] hash="), std::string::npos) << text;
  write_constants(path("g.constants"), find_constants(graph));
  const Graph again = parse_graph(text, registry_, read_constants(path("g.constants")));
  EXPECT_EQ(print_graph(again), text);
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const Tensor &old_data = constant_of(graph.nodes()[index])->tensor(),
                 &data = constant_of(again.nodes()[index])->tensor();
    EXPECT_EQ(data.type(), old_data.type());
    EXPECT_EQ(std::memcmp(data.data(), old_data.data(), static_cast<size_t>(data.bytes())), 0);
  }
}

TEST_F(ConstantText, WithoutItsDataNamesTheConstant) {
  Graph graph(registry_, "g");
  graph.add_output("w", ops::constant_tensor(graph, Constant(Tensor(DType::f32, {5, 5})), "w"));
  expect_error([&] { parse_graph(print_graph(graph), registry_); }, ErrorKind::usage,
               {"<f32[5,5] hash=", "are not in the text", "give the file of constants"});
}

TEST_F(ConstantText, OtherContentIsAnError) {
  const Constant constant(Tensor(DType::f32, {5, 5}));
  write_constants(path("good"), {{to_string(constant->hash()), constant}});
  EXPECT_EQ(read_constants(path("good")).size(), 1u);
  write_constants(path("bad"), {{std::string(32, '0'), constant}});
  expect_error([&] { read_constants(path("bad")); }, ErrorKind::data, {"bad", "has other content"});
  expect_error(
      [&] { parse_constant("<f32[25] hash=" + to_string(constant->hash()) + ">", read_constants(path("good"))); },
      ErrorKind::data, {"is f32[5,5] in the file of constants"});
}

TEST_F(ConstantText, MalformedElementsAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"<i4[2] 1,8>", "'8' is more than an element of a constant i4[2] holds"},
      {"<u8[1] -1>", "'-1' is no element"},
      {"<i64[1] 9223372036854775808>", "is no element"},
      {"<i64[1] 1.5>", "'1.5' is no element"},
      {"<bool[1] 2>", "'2' is more than"},
      {"<f32[2] 1>", "has 2 elements, not those in '1'"},
      {"<f32[2] 1,2,3>", "has 2 elements"},
      {"<f32[17] 1>", "does not stand in the text"},
      {"<f32[281474976710656] 1>", "does not stand in the text"},
      {"f32[2]", "is no constant"},
      {"<g32[2] 1,2>", "unknown dtype"},
  };
  for (const auto& [text, message] : cases)
    expect_error([&, &text = text] { parse_constant(text, {}); }, ErrorKind::data, {message});
}

}  // namespace
}  // namespace weft
