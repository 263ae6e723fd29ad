#include "weft/step/compression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "weft/graph/collective.h"
#include "weft/graph/rewrite.h"
#include "weft/ops/ops.h"
#include "weft/passes/ranks/late_multiply.h"
#include "weft/passes/ranks/overlap_all_reduces.h"
#include "weft/passes/ranks/overlap_collectives.h"

namespace weft::step {

namespace {

constexpr double kWorthIt = 0.8;        // of the time of what loses nothing: predictions are rough, losses are certain
constexpr int64_t kFewElements = 4096;  // are left as they are: biases and norms
constexpr const char* kPrefix = "compress/";

using Methods = std::vector<std::string>;

/// Of a whole step: among which methods each gradient may choose, and how many steps they take to a loss, as a factor
/// (docs/gradients.md, "Compression").
struct Package {
  Methods methods;
  double steps;
};
std::array<Package, 2> packages() { return {Package{{"bf16", "f16"}, 1}, Package{{"bf16", "f16", "powersgd"}, 1.08}}; }
constexpr double kStepWorthIt = 0.95;  // of a step that loses nothing
// Gradients travel while others are computed, which takes these shares of the two: measured over links of 1 Gbit/s and
// 100 Mbit/s by benchmarks/compression_time.py.
constexpr double kShownOfTravelling = 0.5, kHidingOfComputing = 0.5;

/// What becomes of one gradient.
class Exchange {
 public:
  Exchange(Graph& graph, const std::string& parameter, ValueId gradient, const spec::CompressionSpec& spec, int ranks)
      : graph_(graph),
        parameter_(parameter),
        prefix_(kPrefix + parameter),
        gradient_(gradient),
        shape_(graph.shape(gradient)),
        spec_(spec),
        ranks_(ranks) {}

  /// Invalid where the method does not suit the tensor.
  ValueId run(const std::string& method) {
    if (shape_.elements() < kFewElements) return {};
    if (method == "bf16") return narrowed(DType::bf16);
    if (method == "f16") return narrowed(DType::f16);
    if (method == "powersgd") return as_product();
    if (method == "top_k") return as_largest();
    return as_signs();
  }
  const std::vector<SlotSpec>& slots() const { return slots_; }

 private:
  std::string name(std::string_view part) const { return fmt::format("{}.{}", prefix_, part); }

  ValueId slot(const char* kind, Shape shape) {
    slots_.push_back({slot_name(kind, parameter_), {DType::f32, std::move(shape), {}}});
    return graph_.add_input(InputKind::state, slots_.back().name, slots_.back().type);
  }
  void keep(const char* kind, ValueId next) { graph_.add_update(slot_name(kind, parameter_), next); }

  /// The gradient and what was left out before.
  ValueId with_error() { return ops::add(graph_, gradient_, slot(kCompressionErrorSlot, shape_), name("whole")); }
  ValueId gathered(ValueId part, const char* as) {
    return graph_.add(kAllGather, {part}, {{"ranks", int64_t{ranks_}}}, name(as));
  }

  ValueId narrowed(DType dtype) {
    const ValueId narrow = ops::cast(graph_, gradient_, dtype, name(name_of(dtype)));
    return ops::cast(graph_, ops::all_reduce(graph_, narrow, "mean", name("mean")), DType::f32, name("result"));
  }

  ValueId as_product() {
    if (shape_.rank() < 2) return {};
    const int64_t rows = shape_[0], columns = shape_.elements() / rows;
    const int64_t rank = std::min({spec_.rank, rows, columns});
    if (2 * rank * (rows + columns) > rows * columns) return {};
    const ValueId whole = with_error(), factor = slot(kCompressionFactorSlot, {columns, rank});
    const ValueId matrix = ops::reshape(graph_, whole, {rows, columns}, name("matrix"));
    const ValueId left = ops::matmul(graph_, matrix, factor, false, false, name("left"));
    // Begins with zeros, in whose place come orthogonal columns.
    const ValueId columns_of_all =
        graph_.add("orthogonalise", {ops::all_reduce(graph_, left, "mean", name("left.mean"))}, {}, name("orthogonal"));
    const ValueId right = ops::matmul(graph_, matrix, columns_of_all, true, false, name("right"));
    const ValueId next = ops::all_reduce(graph_, right, "mean", name("right.mean"));
    const ValueId product = ops::matmul(graph_, columns_of_all, next, false, true, name("product"));
    const ValueId result = ops::reshape(graph_, product, shape_.dims(), name("result"));
    keep(kCompressionErrorSlot, ops::subtract(graph_, whole, result, name("error")));
    keep(kCompressionFactorSlot, next);
    return result;
  }

  ValueId as_largest() {
    const int64_t elements = shape_.elements();
    if (elements > INT32_MAX) return {};
    const auto k = std::clamp<int64_t>(static_cast<int64_t>(spec_.share * static_cast<double>(elements)), 1, elements);
    const std::vector<ValueId> parts = graph_.add_node("top_k_select", {with_error()}, {{"k", k}}, name("largest"));
    const ValueId values = gathered(ops::multiply_scalar(graph_, parts[0], 1.0 / ranks_, name("values")), "all_values");
    const ValueId sums =
        graph_.add("embedding_backward",
                   {ops::reshape(graph_, values, {k * ranks_, 1}, name("column")), gathered(parts[1], "all_places")},
                   {{"rows", elements}}, name("sums"));
    keep(kCompressionErrorSlot, parts[2]);
    return ops::reshape(graph_, sums, shape_.dims(), name("result"));
  }

  ValueId as_signs() {
    const std::vector<ValueId> parts = graph_.add_node("pack_signs", {with_error()}, {}, name("signs"));
    const ValueId signs = gathered(parts[0], "all_signs"), means = gathered(parts[1], "all_means");
    keep(kCompressionErrorSlot, parts[2]);
    return graph_.add("unpack_signs", {signs, means}, {{"shape", shape_.dims()}, {"ranks", int64_t{ranks_}}},
                      name("result"));
  }

  Graph& graph_;
  const std::string parameter_, prefix_;
  const ValueId gradient_;
  const Shape shape_;
  const spec::CompressionSpec& spec_;
  const int ranks_;
  std::vector<SlotSpec> slots_;
};

struct Seconds {
  double computing = 0, travelling = 0;
  double sum() const { return computing + travelling; }
};

/// Of all nodes of the graph, one after the other.
Seconds seconds_of(const Graph& graph, const CompressionCosts& costs) {
  Seconds seconds;
  for (size_t index = 0; index < graph.nodes().size(); ++index) {
    const NodeSignature node = signature_of(graph, NodeId{static_cast<int32_t>(index)});
    if (node.op->name == kAllReduce)
      seconds.travelling += passes::predicted_seconds(costs.ranks, node.inputs[0].bytes());
    else if (node.op->name == kAllGather)
      seconds.travelling += passes::predicted_gather_seconds(costs.ranks, node.outputs[0].bytes());
    else
      seconds.computing += costs.nodes->seconds(node, costs.threads);
  }
  return seconds;
}

/// Nothing where the method does not suit the tensor.
std::optional<Seconds> seconds_by(const std::string& method, const OpRegistry& registry, const Shape& shape,
                                  const spec::CompressionSpec& spec, const CompressionCosts& costs) {
  Graph graph(registry, "one gradient");
  const ValueId gradient = graph.add_input(InputKind::batch, "gradient", {DType::f32, shape, {}});
  Exchange exchange(graph, "w", gradient, spec, costs.ranks.count);
  if (!exchange.run(method).valid()) return std::nullopt;
  return seconds_of(graph, costs);
}

struct Choice {
  std::string method = "none";
  Seconds seconds = {};
};

/// Of one gradient, among these methods and none.
Choice choose(const Graph& graph, ValueId gradient, const Methods& methods, const spec::CompressionSpec& spec,
              const CompressionCosts& costs) {
  const TensorType& type = graph.type(gradient);
  Choice best{.seconds = {.travelling = passes::predicted_seconds(costs.ranks, type.bytes())}};
  if (const auto late =
          passes::late_multiply_seconds(graph, gradient, costs.ranks, costs.dtype, costs.threads, *costs.nodes))
    best.seconds.travelling = std::min(best.seconds.travelling, *late);
  if (type.dtype != DType::f32) return best;
  double least = kWorthIt * best.seconds.sum();
  for (const std::string& method : methods) {
    const auto seconds = seconds_by(method, graph.registry(), type.shape, spec, costs);
    const bool is_wanted = spec.tensors == "all" && best.method == "none";
    if (!seconds || (seconds->sum() >= least && !is_wanted)) continue;
    best = {method, *seconds};
    least = seconds->sum();
  }
  return best;
}

/// Of a step in which each gradient chooses among these methods.
double step_seconds(const Graph& graph, const std::vector<TrainedParameter>& parameters, const Methods& methods,
                    const spec::CompressionSpec& spec, const CompressionCosts& costs) {
  Seconds all{.computing = costs.computing_seconds};
  for (const TrainedParameter& parameter : parameters) {
    const Seconds seconds = choose(graph, parameter.gradient, methods, spec, costs).seconds;
    all.computing += seconds.computing;
    all.travelling += seconds.travelling;
  }
  return all.computing +
         std::max(kShownOfTravelling * all.travelling, all.travelling - kHidingOfComputing * costs.computing_seconds);
}

Methods methods_of(const spec::CompressionSpec& spec) {
  if (spec.method == "none") return {};
  return spec.method == "auto" ? packages().back().methods : Methods{spec.method};
}

/// By `auto` those of the package with which a run ends first.
Methods methods_of_step(const Graph& graph, const std::vector<TrainedParameter>& parameters,
                        const spec::CompressionSpec& spec, const CompressionCosts& costs) {
  if (spec.method != "auto" || spec.tensors == "all") return methods_of(spec);
  Methods best;
  double least = kStepWorthIt * step_seconds(graph, parameters, {}, spec, costs);
  for (const Package& package : packages()) {
    const double seconds = package.steps * step_seconds(graph, parameters, package.methods, spec, costs);
    if (seconds >= least) continue;
    best = package.methods;
    least = seconds;
  }
  return best;
}

}  // namespace

std::string choose_compression(const Graph& graph, ValueId gradient, const spec::CompressionSpec& spec,
                               const CompressionCosts& costs) {
  return choose(graph, gradient, methods_of(spec), spec, costs).method;
}

double computing_seconds(const Graph& graph, const CompressionCosts& costs) {
  return seconds_of(graph, costs).computing;
}

std::vector<SlotSpec> exchange_gradients(Graph& graph, std::vector<TrainedParameter>& parameters,
                                         const spec::CompressionSpec& spec, const CompressionCosts& costs) {
  const Methods methods = methods_of_step(graph, parameters, spec, costs);
  std::vector<SlotSpec> slots;
  for (TrainedParameter& parameter : parameters) {
    const std::string method =
        methods.empty() ? "none" : choose(graph, parameter.gradient, methods, spec, costs).method;
    if (method == "none") {
      parameter.gradient = ops::all_reduce(graph, parameter.gradient, "mean", "all_reduce/" + parameter.name);
      continue;
    }
    Exchange exchange(graph, parameter.name, parameter.gradient, spec, costs.ranks.count);
    parameter.gradient = exchange.run(method);
    slots.insert(slots.end(), exchange.slots().begin(), exchange.slots().end());
  }
  return slots;
}

Graph compress_early(const Graph& graph) {
  const size_t count = graph.nodes().size();
  const auto is_added = [&](size_t index) {
    return graph.node_name(NodeId{static_cast<int32_t>(index)}).starts_with(kPrefix);
  };
  std::vector<int> level(count, 0);  // collectives that a node waits for, one after the other
  for (size_t index = 0; index < count; ++index)
    for (const ValueId input : graph.nodes()[index].inputs)
      if (const NodeId id = graph.value(input).producer; id.valid()) {
        const int own = is_collective(graph.node(id)) ? 1 : 0;
        level[index] = std::max(level[index], level[static_cast<size_t>(id.index)] + own);
      }
  const auto users = find_users(graph);
  Rewriter rewriter(graph);
  std::vector<bool> is_done(count, false);
  const auto emit = [&](auto&& self, size_t index) -> void {
    if (is_done[index]) return;
    const NodeId id{static_cast<int32_t>(index)};
    rewriter.copy(id);
    is_done[index] = true;
    for (const ValueId output : graph.node(id).outputs)
      for (const NodeId user : users[static_cast<size_t>(output.index)]) {
        const auto next = static_cast<size_t>(user.index);
        const auto& inputs = graph.node(user).inputs;
        if (is_added(next) && level[next] == 0 &&
            std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) { return rewriter.is_mapped(input); }))
          self(self, next);
      }
  };
  // What waits for others goes through all tensors once per collective, so that those of one tensor hide another's.
  std::vector<size_t> waiting;
  for (size_t index = 0; index < count; ++index)
    if (is_added(index) && level[index] > 0) waiting.push_back(index);
  std::stable_sort(waiting.begin(), waiting.end(), [&](size_t a, size_t b) { return level[a] < level[b]; });
  for (size_t index = 0; index < count; ++index) {
    if (!waiting.empty() && index == waiting.front())
      for (const size_t one : waiting) emit(emit, one);
    emit(emit, index);
  }
  return rewriter.finish();
}

bool is_compression_error(const std::string& state) { return state.starts_with(slot_name(kCompressionErrorSlot, "")); }

void renew_compression_slots(const std::vector<SlotSpec>& slots, State& state) {
  std::set<std::string> wanted;
  const auto is_one = [](const std::string& name) {
    return is_compression_error(name) || name.starts_with(slot_name(kCompressionFactorSlot, ""));
  };
  for (const SlotSpec& slot : slots) {
    if (!is_one(slot.name)) continue;
    wanted.insert(slot.name);
    if (!state.has(slot.name) || state.type(slot.name).shape != slot.type.shape) start_slots({slot}, state);
  }
  for (const std::string& name : state.names())
    if (is_one(name) && !wanted.contains(name)) state.remove(name);
}

}  // namespace weft::step
