// An inference graph of weft as an ONNX model.
//
// A graph of weft is for one size of the batch. The ONNX model is for any: the graph is built twice, for two sizes, and
// every number that differs between them is a sum b + a N of the batch's size N, which the model computes where it
// needs it.
#pragma once

#include <map>
#include <string>

#include "weft/graph/graph.h"
#include "weft/onnx/file/model.h"

namespace weft::onnx {

inline constexpr int64_t kOldestOpset = 13;  // that weft writes; the newest is kNewestOpset
/// Where nobody asks for another: programs that read ONNX lag behind the newest.
inline constexpr int64_t kUsualOpset = 23;
/// The first version with integers of 4 bits and scales of groups, and the first with 2 bits.
inline constexpr int64_t kOpsetOfGroups = 21, kOpsetOfTwoBits = 25;
/// The first version whose DequantizeLinear says what the node dequantize_linear does; 0: each does.
int64_t first_opset_for(const Graph& graph, const Node& dequantize);

struct ExportRequest {
  const Graph& graph;            // before any pass
  int64_t batch = 1;             // for which it is
  const Graph* other = nullptr;  // the same for another size; null: the model has this size alone
  int64_t other_batch = 0;
  std::map<std::string, Tensor> parameters;  // and states, by their names
  std::map<std::string, std::string> metadata = {};
  int64_t opset = kUsualOpset;
};

/// Names of values stay. Error(usage) names an op that ONNX cannot express, with its node, or an opset that weft does
/// not write.
Model export_graph(const ExportRequest& request);

}  // namespace weft::onnx
