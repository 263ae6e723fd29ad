// Batches of random content and steps over them, to measure speed without data.
#pragma once

#include <map>
#include <string>

#include "weft/graph/graph.h"
#include "weft/runtime/executor.h"

namespace weft::program {

class SyntheticBatch {
 public:
  /// One tensor per batch input of the graph: uniform in [-1, 1) where floating, else whole numbers below `classes`.
  SyntheticBatch(const Graph& graph, int64_t classes);
  /// Binds them and sets learning_rate, seed and step where the graph has them. Keep this object alive.
  void bind(Executor& executor) const;

 private:
  std::map<std::string, Tensor> tensors_;
};

/// A whole training step: as many batches as are accumulated, then, where it has a graph of its own, the update.
class SyntheticStep {
 public:
  /// `update` may be null. Binds both to the state, which has to live on; `batch` is bound by SyntheticBatch too.
  SyntheticStep(Executor& batch, Executor* update, State& state, int64_t batches);
  /// `of_update`: where that is in the graph of the batches, of the last of them, which is in `of_batches` too.
  void run(Profile* of_batches = nullptr, Profile* of_update = nullptr);

 private:
  Executor& batch_;
  Executor* update_;
  State& state_;
  int64_t batches_;
};

}  // namespace weft::program
