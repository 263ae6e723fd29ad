// Tensors of random content for the tests of executors.
#pragma once

#include "weft/base/rng.h"
#include "weft/tensor/tensor.h"

namespace weft::test {

/// f32, uniform in [-0.5, 0.5).
inline Tensor drawn_tensor(const Shape& shape, uint64_t seed) {
  Tensor tensor(DType::f32, shape);
  RandomStream random(seed);
  for (int64_t index = 0; index < tensor.elements(); ++index) tensor.data_as<float>()[index] = random.uniform() - 0.5f;
  return tensor;
}

}  // namespace weft::test
