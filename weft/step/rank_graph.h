// The graph of one rank of a pipeline: its schedule, unrolled. Each slot becomes the nodes of its stage for its
// micro-batch. Between ranks stand the halves of messages: a tensor is sent as soon as it is there, and its memory is
// free again where the forecast says that it has arrived; room for what comes is made one slot before it is read. The
// order of the waits follows from one forecast that all ranks share, so that no two of them can wait for each other.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/step/pipeline_layout.h"

namespace weft::step {

/// Which rank a graph is for.
struct PipelinePlace {
  int rank = 0;    // along the axis pipeline
  int others = 1;  // ranks along the axis data, which have the same stages
  int data_rank = 0;
  int tensor_ranks = 1;  // that share the layers of each stage
  int tensor_rank = 0;

  /// Those that have the same stages follow each other (rank_mesh.h).
  int ranks_of_stage() const { return others * tensor_ranks; }
  /// The rank there that divides the batch and shares the layers as this one does.
  int counterpart(int other) const { return (other * others + data_rank) * tensor_ranks + tensor_rank; }
};

class RankGraph {
 public:
  /// Keeps references to the first two. `exchanges`: per trained parameter whether the ranks along the axis data take
  /// the mean of its gradient in each micro-batch; else of its sum, which others do.
  RankGraph(const MicroBatch& micro, const PipelineLayout& layout, const PipelinePlace& place,
            std::vector<bool> exchanges);

  /// Forward and backward work of all micro-batches.
  void add_slots();

  Graph& graph() { return graph_; }
  bool is_held(const std::string& state) const;

  /// Sums over the micro-batches that this rank has made: of an output of the micro-batch, and of the terms of a
  /// gradient (their mean). Invalid where it makes none.
  ValueId output_sum(const std::string& name) const;
  ValueId gradient(size_t parameter) const;
  /// Of a value of the micro-batch on which no state bears, computed here: the sum over the micro-batches, or the mean.
  ValueId sum_made_here(ValueId value, bool mean);
  /// A state as it is now; the input is made where there is none.
  ValueId state(const std::string& name, InputKind kind, const TensorType& type);
  void set_state(const std::string& name, ValueId value) { states_[name] = value; }
  /// Successors of the states that the slots have changed.
  const std::map<std::string, ValueId>& changed_states() const { return changed_; }
  ValueId scalar(const std::string& name, const TensorType& type);
  /// The sums of gradients that this rank keeps.
  const std::vector<SlotSpec>& sums() const { return sums_; }

  /// Messages after the slots, each with a number that both ranks give. What is sent is waited for by finish().
  void send(ValueId value, int to, int64_t number);
  ValueId receive(int from, int64_t number, const TensorType& type, const std::string& name);
  /// Of the first number that is free.
  int64_t free_number() const;

  void finish();

 private:
  struct Sent {
    ValueId pending;
    Attributes attributes;
    double arrives = 0;  // in seconds of the forecast
  };

  void add_slot(size_t at);
  void expect(size_t at);
  void end_sends(double now);
  void emit(int m, NodeId id);
  ValueId resolve(int m, ValueId value);
  ValueId resolve_input(int m, ValueId value);
  void send_value(int m, ValueId value);
  void add_terms(int m, ValueId value, ValueId made);
  void add_to_outputs(ValueId value, ValueId made);
  Attributes message(int peer, int64_t number, const std::string& tensors) const;
  ValueId& made(int m, ValueId value);
  std::string named(int m, const std::string& name) const;

  const MicroBatch& micro_;
  const PipelineLayout& layout_;
  const PipelinePlace place_;
  const std::vector<bool> exchanges_;
  Graph graph_;
  std::vector<std::vector<ValueId>> made_;        // per micro-batch and value
  std::vector<std::vector<ValueId>> expected_;    // per micro-batch and message: what is under way
  std::map<int32_t, const GraphInput*> inputs_;   // of the micro-batch's graph, by value
  std::map<int32_t, std::string> updates_;        // states by their successor
  std::map<int32_t, std::vector<size_t>> terms_;  // trained parameters by a term of their gradient
  std::map<std::string, ValueId> states_, changed_, output_sums_;
  std::vector<ValueId> gradients_;  // per trained parameter
  std::vector<SlotSpec> sums_;
  ValueId begins_, adds_, share_;  // constants of sums
  std::vector<Sent> sent_;
  size_t now_ = 0;  // the slot at hand
};

}  // namespace weft::step
