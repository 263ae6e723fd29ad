// Runs the graph of several ranks without a plan, node by node on all of them at once: for tests of what passes make of
// a graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/graph/collective.h"
#include "weft/runtime/interpret.h"
#include "weft/tensor/element.h"

namespace weft::test {

using NamedTensors = std::map<std::string, Tensor>;

namespace lockstep {

/// [rank] of one operand.
using OnRanks = std::vector<Tensor>;

inline OnRanks summed(const OnRanks& own, bool is_mean) {
  Tensor sum(own.front().type());
  for (int64_t i = 0; i < sum.elements(); ++i) {
    double total = 0;
    for (const Tensor& one : own) total += load_element(one.dtype(), one.data(), i);
    store_element(sum.dtype(), sum.data(), i, is_mean ? total / static_cast<double>(own.size()) : total);
  }
  return OnRanks(own.size(), sum);
}

inline OnRanks gathered(const OnRanks& own) {
  Shape shape = own.front().shape();
  shape[0] *= static_cast<int64_t>(own.size());
  const Sharding rows{.whole = shape, .flat = {}, .split = [&] {
                        std::vector<std::optional<MeshAxis>> split(static_cast<size_t>(shape.rank()));
                        split[0] = MeshAxis{"ranks", static_cast<int64_t>(own.size())};
                        return split;
                      }()};
  Tensor all(own.front().dtype(), shape);
  for (size_t rank = 0; rank < own.size(); ++rank) put_part(all, own[rank], rows, static_cast<int64_t>(rank));
  return OnRanks(own.size(), all);
}

inline OnRanks parts(const OnRanks& own, int64_t dimension = 0, int64_t blocks = 1) {
  Sharding sharding{.whole = own.front().shape(), .blocks = blocks};
  sharding.split.resize(static_cast<size_t>(sharding.whole.rank()));
  sharding.split[static_cast<size_t>(dimension)] = MeshAxis{"ranks", static_cast<int64_t>(own.size())};
  OnRanks results;
  for (size_t rank = 0; rank < own.size(); ++rank)
    results.push_back(part_of(own[rank], sharding, static_cast<int64_t>(rank)));
  return results;
}

}  // namespace lockstep

/// Outputs and updates by name, of each rank. `inputs`: of each rank, plain. All ranks stand along the axis of each
/// exchange.
inline std::vector<NamedTensors> evaluate_on_ranks(const Graph& graph, const std::vector<NamedTensors>& inputs,
                                                   const Device& device) {
  const size_t ranks = inputs.size();
  std::vector<lockstep::OnRanks> values(graph.values().size());
  for (const GraphInput& input : graph.inputs())
    for (const NamedTensors& own : inputs) values[static_cast<size_t>(input.value.index)].push_back(own.at(input.name));
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const Node& node = graph.nodes()[index];
    const auto operand = [&](size_t at) -> const lockstep::OnRanks& {
      return values[static_cast<size_t>(node.inputs[at].index)];
    };
    lockstep::OnRanks& result = values[static_cast<size_t>(node.outputs[0].index)];
    if (node.op->name == kAllReduce) {
      result = lockstep::summed(operand(0), node.attributes.text("reduction") == "mean");
    } else if (node.op->name == kAllGather) {
      result = lockstep::gathered(operand(0));
    } else if (node.op->name == kOwnPart) {
      result = lockstep::parts(operand(0), node.attributes.integer("dimension"), node.attributes.integer("blocks"));
    } else if (node.op->name == kReduceScatter) {
      result = lockstep::parts(lockstep::summed(operand(0), node.attributes.text("reduction") == "mean"));
    } else if (node.op->name == kAxisPlace) {
      for (size_t rank = 0; rank < ranks; ++rank) {
        result.emplace_back(DType::i64, Shape{});
        *result.back().data_as<int64_t>() = static_cast<int64_t>(rank);
      }
    } else {
      const NodeSignature signature = signature_of(graph, NodeId{static_cast<int32_t>(index)});
      for (size_t rank = 0; rank < ranks; ++rank) {
        std::vector<Tensor> operands;
        for (size_t at = 0; at < node.inputs.size(); ++at) operands.push_back(operand(at)[rank]);
        const std::vector<Tensor> outputs = evaluate_node(signature, operands, device);
        for (size_t at = 0; at < outputs.size(); ++at)
          values[static_cast<size_t>(node.outputs[at].index)].push_back(outputs[at]);
      }
    }
  }
  std::vector<NamedTensors> results(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    for (const GraphOutput& output : graph.outputs())
      results[rank][output.name] = values[static_cast<size_t>(output.value.index)][rank];
    for (const StateUpdate& update : graph.updates())
      results[rank][update.state] = values[static_cast<size_t>(update.value.index)][rank];
  }
  return results;
}

}  // namespace weft::test
