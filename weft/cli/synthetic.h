// Batches of random content, to measure speed without data.
#pragma once

#include <map>
#include <string>

#include "weft/graph/graph.h"
#include "weft/runtime/executor.h"

namespace weft::cli {

class SyntheticBatch {
 public:
  /// One tensor per batch input of the graph: uniform in [-1, 1) where floating, else whole numbers below `classes`.
  SyntheticBatch(const Graph& graph, int64_t classes);
  /// Binds them and sets learning_rate, seed and step where the graph has them. Keep this object alive.
  void bind(Executor& executor) const;

 private:
  std::map<std::string, Tensor> tensors_;
};

}  // namespace weft::cli
