// Batches of random content, to measure speed without data.
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
  /// Keep this object alive.
  void bind(Executor& executor) const;

 private:
  std::map<std::string, Tensor> tensors_;
};

}  // namespace weft::program
