// How ranks stand in a mesh, and which part of a tensor each of them has.
#include "weft/graph/sharding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/support/error_of.h"
#include "weft/graph/filled_part.h"
#include "weft/graph/tensor_parts.h"
#include "weft/graph/text.h"
#include "weft/ops/all.h"

namespace weft {
namespace {

Tensor counted(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 1.0f);
  return Tensor::of(shape, values);
}

Sharding flat(const Shape& whole, int64_t ranks) { return {.whole = whole, .flat = MeshAxis{"data", ranks}}; }

TEST(Mesh, GroupsDifferOnOneAxisAlone) {
  const Mesh mesh({{"pipeline", 2}, {"data", 3}, {"tensor", 2}});
  EXPECT_EQ(mesh.size(), 12);
  EXPECT_EQ(mesh.size_of("data"), 3);
  EXPECT_EQ(mesh.size_of("expert"), 1);
  EXPECT_EQ(mesh.group_of(9, "tensor"), (std::vector<int>{8, 9}));
  EXPECT_EQ(mesh.group_of(9, "data"), (std::vector<int>{7, 9, 11}));
  EXPECT_EQ(mesh.group_of(9, "pipeline"), (std::vector<int>{3, 9}));
  EXPECT_EQ(mesh.group_of(9, "expert"), std::vector<int>{9});
}

TEST(Mesh, EveryRankStandsWhereItsCoordinatesSay) {
  const Mesh mesh({{"data", 3}, {"tensor", 4}});
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    EXPECT_EQ(4 * mesh.coordinate(rank, "data") + mesh.coordinate(rank, "tensor"), rank);
    for (const char* axis : {"data", "tensor"})
      EXPECT_EQ(mesh.group_of(rank, axis)[static_cast<size_t>(mesh.coordinate(rank, axis))], rank) << axis;
  }
}

TEST(Mesh, ItsTextIsReadBack) {
  EXPECT_EQ(to_string(parse_mesh("data=4,tensor=2")), "data=4,tensor=2");
  for (const char* wrong : {"", "data", "data=0", "data=x", "4=data", "data=2,"})
    EXPECT_NE(test::error_of([&] { parse_mesh(wrong); }).find("is no mesh; write its axes"), std::string::npos)
        << wrong;
  EXPECT_NE(test::error_of([] { parse_mesh("data=2,data=3"); }).find("two axes 'data'"), std::string::npos);
}

TEST(Sharding, ItsTextIsReadBack) {
  const MeshAxis data{"data", 4}, tensor{"tensor", 2};
  const std::pair<Sharding, const char*> cases[] = {
      {{.whole = {64, 3, 7, 7}, .flat = data}, "flat(data=4) of (64,3,7,7)"},
      {{.whole = {64, 128}, .split = {std::nullopt, tensor}}, "split(-,tensor=2) of (64,128)"},
      {{.whole = {96, 8}, .split = {tensor, std::nullopt}, .blocks = 3}, "split(tensor=2,-) blocks(3) of (96,8)"},
      {{.whole = {8}, .partial = data}, "partial(data=4) of (8)"},
      {{.whole = {8, 2}, .split = {tensor, std::nullopt}, .partial = data},
       "split(tensor=2,-) partial(data=4) of (8,2)"},
      {{.whole = {}}, "replicated of ()"}};
  for (const auto& [sharding, text] : cases) {
    EXPECT_EQ(to_string(sharding), text);
    EXPECT_EQ(parse_sharding(text), sharding) << text;
  }
  for (const char* wrong : {"", "flat of (3)", "flat(data) of (3)", "flat(data=2)", "split(data=2) of (3,4)",
                            "round(data=2) of (3)", "flat(data=2) of (x)", "flat(data=2 of (3)"})
    EXPECT_NE(test::error_of([&] { parse_sharding(wrong); }).find("is no sharding"), std::string::npos) << wrong;
}

TEST(Sharding, PartsAreEvenWhateverTheShape) {
  EXPECT_EQ(flat_part_elements(64 * 3 * 7 * 7, 2), 4704);
  EXPECT_EQ(flat_part_elements(1024, 3), 352);
  EXPECT_EQ(flat_part_elements(17, 2), 16);
  EXPECT_EQ(flat_part_elements(1, 4), 16);
  EXPECT_EQ(part_shape(flat({64, 3, 7, 7}, 2)), Shape{4704});
  EXPECT_EQ(part_shape({.whole = {64, 128}, .split = {std::nullopt, MeshAxis{"tensor", 4}}}), (Shape{64, 32}));
  EXPECT_NE(test::error_of([] {
              part_shape({.whole = {6, 5}, .split = {std::nullopt, MeshAxis{"tensor", 2}}});
            }).find("dimension 1 of (6,5) cannot be split into 2 equal parts"),
            std::string::npos);
}

TEST(Sharding, PartsPutTogetherAreTheWhole) {
  for (const Shape& shape : {Shape{5, 7}, Shape{64}, Shape{3, 3, 3, 3}, Shape{1}})
    for (const int64_t ranks : {1, 2, 3, 8}) {
      const Tensor whole = counted(shape);
      Tensor again(DType::f32, shape);
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const Tensor part = part_of(whole, flat(shape, ranks), rank);
        EXPECT_EQ(part.elements(), flat_part_elements(shape.elements(), ranks));
        for (int64_t i = 0; i < part.elements(); ++i) {
          const int64_t at = rank * part.elements() + i;
          EXPECT_EQ(part.data_as<float>()[i], at < whole.elements() ? static_cast<float>(at + 1) : 0.0f);
        }
        put_part(again, part, flat(shape, ranks), rank);
      }
      for (int64_t i = 0; i < whole.elements(); ++i) EXPECT_EQ(again.data_as<float>()[i], whole.data_as<float>()[i]);
    }
}

TEST(Sharding, PartsAlongADimensionPutTogetherAreTheWhole) {
  const Shape shape{4, 12, 3};
  for (int dimension = 0; dimension < 2; ++dimension)
    for (const int64_t blocks : {1, 2}) {
      Sharding sharding{.whole = shape, .split = {{}, {}, {}}, .blocks = blocks};
      sharding.split[static_cast<size_t>(dimension)] = MeshAxis{"tensor", 2};
      const Tensor whole = counted(shape);
      Tensor again(DType::f32, shape);
      for (int64_t rank = 0; rank < 2; ++rank) {
        const Tensor part = part_of(whole, sharding, rank);
        EXPECT_EQ(part.shape(), part_shape(sharding));
        put_part(again, part, sharding, rank);
      }
      for (int64_t i = 0; i < whole.elements(); ++i) EXPECT_EQ(again.data_as<float>()[i], whole.data_as<float>()[i]);
    }
  // Queries, keys and values of two heads each: a rank gets one of each.
  const Sharding heads{.whole = {6}, .split = {MeshAxis{"tensor", 2}}, .blocks = 3};
  const Tensor second = part_of(counted({6}), heads, 1);
  EXPECT_EQ(std::vector<float>(second.data_as<float>(), second.data_as<float>() + 3), (std::vector<float>{2, 4, 6}));
}

TEST(Sharding, OfRanksWithTheSamePartTheFirstHoldsIt) {
  const Mesh mesh({{"data", 3}, {"tensor", 2}});
  const Sharding split{.whole = {6}, .split = {MeshAxis{"tensor", 2}}};
  EXPECT_EQ(holders_of(split, mesh), (std::vector<int>{0, 1}));
  EXPECT_EQ(holders_of({.whole = {6}, .flat = MeshAxis{"data", 3}}, mesh), (std::vector<int>{0, 2, 4}));
  EXPECT_EQ(coordinate_of(split, mesh, 5), 1);
}

TEST(Sharding, AGraphsTextSaysWhichStatesAreParts) {
  const OpRegistry registry = ops::make_registry();
  Graph graph(registry, "g");
  const ValueId v = graph.add_input(InputKind::state, "v", {DType::f32, {32}, {}});
  graph.set_sharding(v, flat({5, 11}, 2));
  const std::string text = print_graph(graph);
  EXPECT_NE(text.find("state %v \"v\" : f32[32] {sharding=\"flat(data=2) of (5,11)\"}"), std::string::npos) << text;
  EXPECT_EQ(print_graph(parse_graph(text, registry)), text);
  EXPECT_EQ(parse_graph(text, registry).sharding(v), flat({5, 11}, 2));
  EXPECT_NE(test::error_of([&] {
              graph.set_sharding(v, flat({5, 11}, 4));
            }).find("'v' is f32[32], and a part of"),
            std::string::npos);
}

TEST(Sharding, ValuesTakeThatOfAnotherGraphsValueWhereTheirShapesAgree) {
  const OpRegistry registry = ops::make_registry();
  Graph from(registry, "from"), to(registry, "to");
  const ValueId known = from.add_input(InputKind::state, "v", {DType::f32, {32}, {}});
  from.set_sharding(known, flat({5, 11}, 2));
  const ValueId same = to.add_input(InputKind::state, "same", {DType::bf16, {32}, {}});
  const ValueId other = to.add_input(InputKind::state, "other", {DType::f32, {55}, {}});
  to.copy_sharding(same, from, known);
  to.copy_sharding(other, from, known);
  EXPECT_EQ(to.sharding(same), flat({5, 11}, 2));
  EXPECT_FALSE(to.sharding(other));
}

TEST(Sharding, APartIsFilledWithoutTheWhole) {
  const std::optional<MeshAxis> tensor = MeshAxis{"tensor", 2}, data = MeshAxis{"data", 3};
  for (const Sharding& sharding :
       {Sharding{.whole = {5, 7}, .flat = data},
        Sharding{.whole = {6, 40}, .split = {tensor, std::nullopt}, .blocks = 3},
        Sharding{.whole = {6, 40}, .split = {std::nullopt, tensor}},
        Sharding{.whole = {6, 40}, .flat = data, .split = {tensor, std::nullopt}, .blocks = 3},
        Sharding{.whole = {6, 40}, .split = {data, tensor}}}) {
    const Tensor whole = counted(sharding.whole);
    for (int64_t number = 0; number < parts_of(sharding); ++number) {
      int64_t end = 0, most = 0;
      const Tensor part = filled_part(sharding, number, [&](float* values, int64_t first, int64_t count) {
        EXPECT_GE(first, end) << "ranges rise";
        std::copy_n(whole.data_as<float>() + first, count, values);
        end = first + count;
        most += count;
      });
      const Tensor wanted = part_of(whole, sharding, number);
      ASSERT_EQ(part.shape(), wanted.shape());
      EXPECT_EQ(std::memcmp(part.data(), wanted.data(), static_cast<size_t>(part.bytes())), 0) << to_string(sharding);
      EXPECT_LT(most, whole.elements());
    }
  }
}

TEST(Sharding, ElementsOfAPartOfADimensionAreSplitAgain) {
  const Sharding both{
      .whole = {6, 40}, .flat = MeshAxis{"data", 3}, .split = {MeshAxis{"tensor", 2}, std::nullopt}, .blocks = 3};
  EXPECT_EQ(parts_of(both), 6);
  EXPECT_EQ(part_shape(both), Shape{48}) << "of 120 elements of a part";
  EXPECT_EQ(parse_sharding(to_string(both)), both);
  const Tensor whole = counted({6, 40});
  Tensor again(DType::f32, {6, 40});
  for (int64_t number = 0; number < 6; ++number) put_part(again, part_of(whole, both, number), both, number);
  EXPECT_EQ(std::memcmp(again.data(), whole.data(), static_cast<size_t>(whole.bytes())), 0);
  // The second part of the rows 0, 2 and 4.
  EXPECT_EQ(part_of(whole, both, 2).data_as<float>()[0], whole.data_as<float>()[2 * 40 + 8]);
  const Mesh mesh({{"pipeline", 2}, {"data", 3}, {"tensor", 2}});
  EXPECT_EQ(holders_of(both, mesh), (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(holders_of(both, mesh, 6), (std::vector<int>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(coordinate_of(both, mesh, 9), 3);
}

TEST(Sharding, TwoAxesSplitADimensionEach) {
  // Experts of which ranks along data have some, each of which ranks along tensor have in parts.
  const MeshAxis data{"data", 2}, tensor{"tensor", 3};
  const Sharding both{.whole = {4, 6, 5}, .split = {data, tensor, std::nullopt}};
  EXPECT_EQ(to_string(both), "split(data=2,tensor=3,-) of (4,6,5)");
  EXPECT_EQ(parse_sharding(to_string(both)), both);
  EXPECT_EQ(parts_of(both), 6);
  EXPECT_EQ(part_shape(both), (Shape{2, 2, 5}));
  const Tensor whole = counted({4, 6, 5});
  Tensor again(DType::f32, {4, 6, 5});
  for (int64_t number = 0; number < 6; ++number) put_part(again, part_of(whole, both, number), both, number);
  EXPECT_EQ(std::memcmp(again.data(), whole.data(), static_cast<size_t>(whole.bytes())), 0);
  // The second experts' middle rows.
  EXPECT_EQ(part_of(whole, both, 4).data_as<float>()[0], whole.data_as<float>()[2 * 30 + 2 * 5]);
  const Mesh mesh({{"pipeline", 2}, data, tensor});
  EXPECT_EQ(holders_of(both, mesh), (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(coordinate_of(both, mesh, 10), 4);
  EXPECT_TRUE(names_each_axis_once(both));
  EXPECT_FALSE(names_each_axis_once({.whole = {4, 6}, .flat = data, .split = {data, std::nullopt}}));
}

TEST(Sharding, BlocksAreOfTheLastDimensionThatIsSplit) {
  const Sharding both{.whole = {2, 12}, .split = {MeshAxis{"data", 2}, MeshAxis{"tensor", 2}}, .blocks = 3};
  EXPECT_EQ(part_shape(both), (Shape{1, 6}));
  const Tensor whole = counted({2, 12}), part = part_of(whole, both, 3);
  EXPECT_EQ(std::vector<float>(part.data_as<float>(), part.data_as<float>() + 6),
            (std::vector<float>{15, 16, 19, 20, 23, 24}));
  Tensor again(DType::f32, {2, 12});
  for (int64_t number = 0; number < 4; ++number) put_part(again, part_of(whole, both, number), both, number);
  EXPECT_EQ(std::memcmp(again.data(), whole.data(), static_cast<size_t>(whole.bytes())), 0);
}

}  // namespace
}  // namespace weft
