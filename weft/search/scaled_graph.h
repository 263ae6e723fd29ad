// The graph of a step for any number of rows, read off two graphs that were built for few: each dimension of a value is
// a line in the rows. So a search that asks for many sizes of micro-batches builds no graph for each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/device/cost_model.h"
#include "weft/graph/graph.h"
#include "weft/predict/node_times.h"

namespace weft::search {

inline constexpr int64_t kSmallRows = 2, kLargeRows = 4;

class ScaledGraph {
 public:
  /// Of kSmallRows and of kLargeRows. Error(usage) where the two have other nodes.
  ScaledGraph(Graph small, Graph large);

  /// Of kSmallRows; values and nodes have the same numbers whatever the rows.
  const Graph& graph() const { return small_; }
  int64_t bytes(ValueId value, int64_t rows) const;
  NodeSignature signature(NodeId node, int64_t rows) const;
  /// Nodes of one class do the same work.
  size_t class_of(NodeId node) const { return classes_[static_cast<size_t>(node.index)]; }
  size_t classes() const { return examples_.size(); }
  /// A node of the class.
  NodeId example(size_t of_class) const { return examples_[of_class]; }
  /// Invalid where there is none.
  NodeId find_node(const std::string& name) const;

 private:
  int64_t scaled(int64_t small, int64_t large, int64_t rows) const;

  Graph small_, large_;
  std::vector<size_t> classes_;
  std::vector<NodeId> examples_;
  std::unordered_map<std::string, int32_t> by_name_;
};

/// What its nodes take, asked once for each class and number of rows.
class ScaledTimes {
 public:
  /// Keeps a reference to the graph.
  ScaledTimes(const ScaledGraph& graph, predict::NodeTimes times) : graph_(graph), times_(std::move(times)) {}
  double seconds(NodeId node, int64_t rows);

 private:
  const ScaledGraph& graph_;
  const predict::NodeTimes times_;
  std::map<std::pair<size_t, int64_t>, double> known_;
};

/// The costs of the nodes of the small graph, as if it had so many rows: for passes that cut it. Keeps references.
class CostsOfRows : public CostModel {
 public:
  CostsOfRows(const ScaledGraph& graph, int64_t rows, const CostModel& costs)
      : graph_(graph), rows_(rows), costs_(costs) {}
  NodeCost cost_of(const NodeSignature& node, int threads) const override;

 private:
  const ScaledGraph& graph_;
  const int64_t rows_;
  const CostModel& costs_;
  mutable std::unordered_map<size_t, NodeCost> known_ = {};  // by class; of one number of threads
};

}  // namespace weft::search
