#include "weft/search/model_profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/format.h"
#include "weft/passes/support/rebuild.h"
#include "weft/search/repeats.h"
#include "weft/search/stage_sums.h"
#include "weft/step/experts.h"
#include "weft/step/step.h"

namespace weft::search {

struct ModelProfile::Shared {
  std::unique_ptr<ScaledGraph> graph;
  std::unique_ptr<ScaledTimes> times;
  OwnedNodes nodes;
};

namespace {

/// Of one rank that divides nothing, as the search starts from.
spec::RunSpec undivided(spec::RunSpec spec) {
  spec.mesh = {};
  spec.shard.zero = 0;
  spec.shard.sequence = false;  // graphs of few rows would be divided otherwise than those of the batch
  spec.pipeline = {};
  spec.accumulate = 1;
  spec.batch = kSmallRows;
  spec.virtual_ranks = 0;
  spec.balance = {};
  spec.averaging = {};
  return spec;
}

models::ModelInput input_of_rows(const std::function<models::ModelInput(const spec::StepShape&)>& input, int64_t rows) {
  models::ModelInput own = input(spec::StepShape(rows));
  own.batch = rows;
  return own;
}

/// "optimizer/SLOT/NAME": of the weight of that name.
std::string weight_of_slot(const std::string& slot) {
  const size_t slash = slot.find('/', std::string(step::kSlotPrefix).size());
  return slash == slot.npos ? slot : slot.substr(slash + 1);
}

}  // namespace

ModelProfile::ModelProfile(const Library& library, const spec::RunSpec& spec,
                           const std::function<models::ModelInput(const spec::StepShape&)>& input,
                           predict::NodeTimes times, std::shared_ptr<const CostModel> costs)
    : library_(library),
      spec_(undivided(spec)),
      input_(input),
      times_(std::move(times)),
      costs_(std::move(costs)),
      micro_(step::build_micro_batch(library, spec_, input_of_rows(input, kSmallRows))) {
  const step::MicroBatch large = step::build_micro_batch(library, spec_, input_of_rows(input, kLargeRows));
  micro_graph_ = std::make_unique<ScaledGraph>(micro_.graph, large.graph);
  graphs_ += 2;
  find_blocks();
}

ModelProfile::~ModelProfile() = default;

int64_t ModelProfile::nodes() const { return static_cast<int64_t>(micro_.graph.nodes().size()); }

/// Nodes that stages compute, in order: the row in which blocks repeat.
void ModelProfile::find_blocks() {
  const passes::StagedGraph& whole = cut(kSmallRows, 1);
  std::vector<size_t> row;
  std::vector<uint64_t> tokens;
  for (size_t index = 0; index < micro_.origins.forward_nodes; ++index) {
    if (whole.stage[index] == passes::kNoStage) continue;
    row.push_back(index);
    tokens.push_back(micro_graph_->class_of(passes::node_at(index)));
  }
  block_of_.assign(micro_.graph.nodes().size(), -1);
  int block = 0;
  for (const Repeat& repeat : find_repeats(tokens)) {
    if (repeat.count > 1)
      repeated_.push_back(repeat);
    else
      ++single_nodes_;
    for (size_t piece = 0; piece < repeat.count; ++piece, ++block)
      for (size_t at = 0; at < repeat.length; ++at) block_of_[row[repeat.begin + piece * repeat.length + at]] = block;
  }
}

std::string ModelProfile::describe_blocks() const {
  std::string text;
  for (const Repeat& repeat : repeated_)
    text += fmt::format("{}{} equal blocks of {} nodes", text.empty() ? "" : ", ", repeat.count, repeat.length);
  if (single_nodes_ > 0) text += fmt::format("{}{} other nodes", text.empty() ? "" : ", ", single_nodes_);
  return text;
}

const passes::StagedGraph& ModelProfile::cut(int64_t rows, int stages) {
  const auto known = cuts_.find({rows, stages});
  if (known != cuts_.end()) return known->second;
  std::vector<ValueId> gradients;
  for (const step::TrainedParameter& parameter : micro_.trained) gradients.push_back(parameter.gradient);
  const CostsOfRows costs(*micro_graph_, rows, *costs_);
  return cuts_
      .emplace(std::pair(rows, stages), passes::cut_into_stages(micro_.graph, micro_.origins, gradients, stages, costs,
                                                                static_cast<int>(std::max<int64_t>(spec_.threads, 1))))
      .first->second;
}

/// Nodes that the graph has beside those of the micro-batch update states, or, where layers are shared, bring together
/// what ranks have: then they belong to what they read.
std::vector<int32_t> ModelProfile::owners_of(const Graph& graph, const Sharers& sharers) {
  const ScaledGraph* const whole = sharers != Sharers{} ? shared({}).graph.get() : nullptr;
  const std::vector<bool> is_late = passes::find_late_nodes(graph);
  std::vector<int32_t> owners;
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeId id{static_cast<int32_t>(index)};
    int32_t owner = micro_graph_->find_node(graph.node_name(id)).index;
    const bool is_known =
        owner >= 0 || is_late[index] || whole == nullptr || whole->find_node(graph.node_name(id)).valid();
    if (!is_known)
      for (const ValueId input : graph.node(id).inputs)
        if (const NodeId from = graph.value(input).producer; from.valid() && owner < 0)
          owner = owners[static_cast<size_t>(from.index)];
    owners.push_back(owner >= 0 ? owner : kUpdate);
  }
  return owners;
}

const ModelProfile::Shared& ModelProfile::shared(const Sharers& sharers) {
  const auto known = shared_.find(sharers);
  if (known != shared_.end()) return *known->second;
  spec::RunSpec spec = spec_;
  spec.mesh.tensor = sharers.tensor;
  const auto build = [&](int64_t rows) {
    ++graphs_;
    models::ModelInput input = input_of_rows(input_, rows);
    input.expert_ranks = sharers.experts;
    return step::build_training_step(library_, spec, input, {.tensor_ranks = static_cast<int>(sharers.tensor)});
  };
  step::TrainingStep small = build(kSmallRows);
  auto made = std::make_unique<Shared>();
  for (const step::SlotSpec& slot : small.slots)
    made->nodes.slot_bytes[weight_of_slot(slot.name)] += static_cast<double>(slot.type.bytes());
  for (const step::TrainedParameter& parameter : micro_.trained) made->nodes.trained.insert(parameter.name);
  made->graph = std::make_unique<ScaledGraph>(std::move(small.graph), build(kLargeRows).graph);
  made->nodes.owner = owners_of(made->graph->graph(), sharers);
  made->times = std::make_unique<ScaledTimes>(*made->graph, times_);
  return *shared_.emplace(sharers, std::move(made)).first->second;
}

const StagedCosts& ModelProfile::costs(int64_t rows, int64_t tensor, int stages, int64_t data) {
  const Sharers sharers{tensor, step::expert_ranks(spec_, static_cast<int>(data))};
  const auto known = known_.find({rows, sharers, stages});
  if (known != known_.end()) return known->second;
  const Shared& of = shared(sharers);
  const double file_rate = spec_.offload.empty() ? 0 : static_cast<double>(parse_bytes(spec_.offload_rate).value_or(0));
  const StageQuestion question{.graph = *of.graph,
                               .nodes = of.nodes,
                               .micro = micro_,
                               .cut = cut(rows, stages),
                               .block_of = block_of_,
                               .rows = rows};
  return known_.emplace(std::tuple(rows, sharers, stages), sum_up_stages(question, *of.times, file_rate)).first->second;
}

}  // namespace weft::search
