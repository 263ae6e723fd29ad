#include "weft/program/synthetic.h"

#include <algorithm>

#include "weft/base/rng.h"

namespace weft::program {

SyntheticBatch::SyntheticBatch(const Graph& graph, int64_t classes) {
  const auto bound = static_cast<uint32_t>(std::clamp<int64_t>(classes, 1, INT32_MAX));
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind != InputKind::batch) continue;
    const TensorType& type = graph.type(input.value);
    Tensor tensor(type.dtype, type.shape);
    RandomStream random(hash_name(input.name));
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      if (type.dtype == DType::f32)
        tensor.data_as<float>()[i] = 2 * random.uniform() - 1;
      else
        tensor.data_as<int32_t>()[i] = static_cast<int32_t>(random.below(bound));
    }
    tensors_.emplace(input.name, std::move(tensor));
  }
}

void SyntheticBatch::bind(Executor& executor) const {
  for (const auto& [name, tensor] : tensors_) executor.bind_batch(name, tensor.data());
}

}  // namespace weft::program
