// What a model costs, by stages and blocks, for any number of rows and of ranks that share its layers: what a search
// asks thousands of times, from a few graphs. Blocks of equal cost are found in what the graph does (repeats.h).
//
// Costs are those of the graph as autodiff leaves it, before passes fuse and plan it: a search ranks strategies by
// them, and plans those that come first (search.h).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "weft/library/library.h"
#include "weft/models/model.h"
#include "weft/passes/ranks/pipeline_stages.h"
#include "weft/search/memory_choice.h"
#include "weft/search/repeats.h"
#include "weft/search/scaled_graph.h"
#include "weft/spec/run_spec.h"
#include "weft/spec/step_shape.h"
#include "weft/step/micro_batch.h"

namespace weft::search {

enum class Work : uint8_t { forward, backward_inputs, backward_weights };
inline constexpr int kWorks = 3;

/// Exchanges within the layers of a stage, of one micro-batch: along the axis tensor, or data where that divides
/// experts.
struct StageExchange {
  Work work = Work::forward;
  std::string axis, op;  // "tensor", "all_reduce"
  int64_t bytes = 0;
  auto operator<=>(const StageExchange&) const = default;
};

/// A layer whose gradient is a product over the rows of the batch: late multiply may gather these in its place.
struct RowsLayer {
  int64_t weight_bytes = 0, rows_bytes[2] = {};  // of the gradient; of the two operands on one rank
  double product_seconds = 0;                    // of one rank's rows
};

/// A part of the model on one of the ranks that share its layers.
struct StageCost {
  double seconds[kWorks] = {};                      // of one micro-batch, without exchanges
  std::map<StageExchange, int64_t> exchanges = {};  // how many
  double weight_bytes = 0, slot_bytes = 0, gradient_bytes = 0;
  // Of these: of experts that the ranks along data divide, which nothing divides or exchanges further.
  double expert_weight_bytes = 0, expert_slot_bytes = 0, expert_gradient_bytes = 0;
  double update_seconds = 0;
  double sent_bytes = 0;  // to later stages, of one micro-batch
  std::vector<BlockClass> blocks = {};
  std::vector<RowsLayer> rows_layers = {};
};

struct StagedCosts {
  std::vector<StageCost> stages;
  std::vector<bool> has_work;          // per stage (passes::StagedGraph)
  double working_bytes = 0;            // at the peak of a micro-batch, beside what is kept for the backward part
  double all_weight_bytes = 0;         // of the whole model
  double largest_gradients_bytes = 0;  // of the four largest, which are on their way at a time
};

class ModelProfile {
 public:
  /// `times` are those by which steps are predicted, `costs` those by which the run cuts its stages. `input`: of a rank
  /// with so many samples. Keeps a reference to the library.
  ModelProfile(const Library& library, const spec::RunSpec& spec,
               const std::function<models::ModelInput(const spec::StepShape&)>& input, predict::NodeTimes times,
               std::shared_ptr<const CostModel> costs);
  ~ModelProfile();

  /// Of micro-batches of so many rows, on ranks of which so many along `data` divide the experts where the recipe says
  /// so. Error(usage) where the model cannot be cut or shared so.
  const StagedCosts& costs(int64_t rows, int64_t tensor, int stages, int64_t data = 1);
  /// Nodes of a micro-batch, forward and backward.
  int64_t nodes() const;
  /// How its blocks repeat: "12 equal blocks of 26 nodes, 7 other nodes".
  std::string describe_blocks() const;
  /// Graphs that were built.
  int64_t graphs() const { return graphs_; }

 private:
  struct Shared;  // the graph of a rank that shares layers
  struct Sharers {
    int64_t tensor = 1, experts = 1;  // ranks that divide layers, and experts
    auto operator<=>(const Sharers&) const = default;
  };
  void find_blocks();
  std::vector<int32_t> owners_of(const Graph& graph, const Sharers& sharers);
  const Shared& shared(const Sharers& sharers);
  const passes::StagedGraph& cut(int64_t rows, int stages);

  const Library& library_;
  spec::RunSpec spec_;
  std::function<models::ModelInput(const spec::StepShape&)> input_;
  predict::NodeTimes times_;
  std::shared_ptr<const CostModel> costs_;
  step::MicroBatch micro_;  // of kSmallRows
  std::unique_ptr<ScaledGraph> micro_graph_;
  std::vector<int> block_of_;  // per node of the micro-batch; -1: of none
  std::map<std::pair<int64_t, int>, passes::StagedGraph> cuts_;
  std::map<Sharers, std::unique_ptr<Shared>> shared_;
  std::map<std::tuple<int64_t, Sharers, int>, StagedCosts> known_;
  std::vector<Repeat> repeated_;  // those of several pieces
  size_t single_nodes_ = 0;
  int64_t graphs_ = 0;
};

}  // namespace weft::search
