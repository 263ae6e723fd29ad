// A rank's part of a parameter starts as the same part of the whole does, bit for bit.
#include "weft/models/initial_part.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "weft/graph/tensor_parts.h"

namespace weft::models {
namespace {

using Kind = Initializer::Kind;

class InitialPart : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, InitialPart,
                         testing::Values(Kind::zeros, Kind::ones, Kind::uniform, Kind::normal, Kind::identity,
                                         Kind::whitening));

TEST_P(InitialPart, IsThatOfTheWhole) {
  const ParameterSpec parameter{.name = "weight", .shape = {8, 4, 3, 3}, .initializer = {GetParam(), 0.1}};
  const Tensor whole = initialize(parameter, 7);
  const std::optional<MeshAxis> axis = MeshAxis{"tensor", 2};
  for (const Sharding& sharding :
       {Sharding{}, Sharding{.whole = parameter.shape, .flat = MeshAxis{"data", 5}},
        Sharding{.whole = parameter.shape, .split = {axis, {}, {}, {}}},
        Sharding{.whole = parameter.shape, .split = {{}, axis, {}, {}}},
        Sharding{.whole = parameter.shape, .flat = MeshAxis{"data", 3}, .split = {axis, {}, {}, {}}, .blocks = 2}})
    for (int64_t number = 0; number < parts_of(sharding); ++number) {
      const Tensor part = initialize_part(parameter, 7, sharding, number), wanted = part_of(whole, sharding, number);
      ASSERT_EQ(part.shape(), wanted.shape());
      EXPECT_EQ(std::memcmp(part.data(), wanted.data(), static_cast<size_t>(part.bytes())), 0) << to_string(sharding);
    }
}

}  // namespace
}  // namespace weft::models
