#include "weft/program/synthetic.h"

#include <algorithm>
#include <functional>

#include "weft/base/rng.h"
#include "weft/step/accumulation.h"
#include "weft/step/virtual_ranks.h"

namespace weft::program {

namespace {

void set_scalars(Executor& executor) {
  // Small, so that thousands of steps on noise stay finite.
  if (executor.has_scalar("learning_rate")) executor.set_scalar("learning_rate", 1e-5);
  if (executor.has_scalar("momentum")) executor.set_scalar("momentum", 0.9);
  for (const char* name : {"seed", "step", "update"})
    if (executor.has_scalar(name)) executor.set_scalar(name, 1);
}

}  // namespace

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
  set_scalars(executor);
}

SyntheticStep::SyntheticStep(Executor& batch, Executor* update, State& state, int64_t batches)
    : batch_(batch), update_(update), state_(state), batches_(batches) {
  batch.bind_state(state);
  if (update != nullptr) set_scalars(*update);
  if (batch_.has_scalar("share")) batch_.set_scalar("share", 1 / static_cast<double>(batches));
}

void SyntheticStep::run(Profile* of_batches, Profile* of_update) {
  for (int64_t part = 0; part < batches_; ++part) {
    if (batch_.has_scalar("accumulated")) batch_.set_scalar("accumulated", part == 0 ? 0 : 1);
    const bool is_last = part + 1 == batches_;
    if (batch_.has_scalar(step::kSumComplete)) batch_.set_scalar(step::kSumComplete, is_last ? 1 : 0);
    if (batch_.has_scalar(step::kShardIndex)) batch_.set_scalar(step::kShardIndex, static_cast<double>(part));
    if (of_batches == nullptr) {
      batch_.run();
      continue;
    }
    Profile own;
    batch_.run(&own);
    of_batches->seconds.resize(own.seconds.size());
    std::transform(own.seconds.begin(), own.seconds.end(), of_batches->seconds.begin(), of_batches->seconds.begin(),
                   std::plus<>());
    ++of_batches->runs;
    if (is_last && update_ == nullptr && of_update != nullptr) *of_update = std::move(own);
  }
  if (update_ == nullptr) return;
  update_->bind_state(state_);
  update_->run(of_update);
  batch_.bind_state(state_);
}

}  // namespace weft::program
