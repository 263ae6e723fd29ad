#include "weft/onnx/lower/lower.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/constant_node.h"
#include "weft/onnx/lower/normalize.h"
#include "weft/ops/ops.h"

namespace weft::onnx {

namespace {

constexpr int64_t kFoldedBytes = int64_t{8} << 20;  // a known result may have as many, or as its operands
constexpr int64_t kMostUnrolled = 4096;             // nodes that a loop with a known number of turns becomes
constexpr int64_t kMostUnrolledInAll = 8192;        // that all loops of a segment become, with those within others

const std::string kIf = "If";
const std::string kLoop = "Loop";
const std::string kScan = "Scan";

/// Values by name, those of a subgraph before those around it.
struct Scope {
  const OnnxGraph* graph = nullptr;
  const Scope* outer = nullptr;
  std::map<std::string, Operand> values = {};

  const Operand* find(const std::string& name) const {
    const auto found = values.find(name);
    if (found != values.end()) return &found->second;
    return outer == nullptr ? nullptr : outer->find(name);
  }
};

/// A conversion that cannot go on in this graph.
struct Cut {
  bool on_host;
  std::set<std::string> needed;
};

class Lowering {
 public:
  Lowering(const LowerableModel& source, const OpRegistry& registry, const Evaluate& evaluate,
           const LowerRequest& request)
      : source_(source), registry_(registry), evaluate_(evaluate), request_(request), segment_(registry) {}

  Segment run() {
    const OnnxGraph& graph = source_.model().graph;
    Scope scope{&graph};
    add_live_values(scope);
    size_t index = request_.first_node;
    for (; index < graph.nodes.size(); ++index) {
      const OnnxNode& node = graph.nodes[index];
      try {
        lower(node, scope);
      } catch (const NeedsValue& needs) {
        // A value that is live before the segment becomes known and all is lowered again; another ends the segment.
        if (const auto live = request_.live.find(needs.value);
            live != request_.live.end() && std::holds_alternative<TensorType>(live->second))
          throw;
        segment_.needed.insert(needs.value);
        if (is_inner(needs.value, scope)) segment_.next_on_host = true;
        break;
      } catch (const Cut& cut) {
        segment_.next_on_host = cut.on_host;
        segment_.needed = cut.needed;
        break;
      }
    }
    segment_.next_node = index;
    add_outputs(scope, index);
    return std::move(segment_);
  }

 private:
  /// Of a subgraph that was lowered in place: nothing outside knows it, so the whole node runs on the host.
  bool is_inner(const std::string& name, const Scope& scope) const { return scope.find(name) == nullptr; }

  void add_live_values(Scope& scope) {
    for (const auto& [name, value] : request_.live) {
      if (const HostValue* known = std::get_if<HostValue>(&value)) {
        scope.values[name] = {{}, *known};
        continue;
      }
      if (!source_.is_read_from(name, request_.first_node)) continue;
      const ValueId id = segment_.graph.add_input(InputKind::batch, input_name(name), std::get<TensorType>(value));
      segment_.inputs[name] = segment_.graph.inputs().back().name;
      const auto prepare = request_.prepare_inputs.find(name);
      const bool is_ready = prepare == request_.prepare_inputs.end();
      scope.values[name] = {is_ready ? id : prepare->second(segment_.graph, id), std::nullopt};
    }
    for (const auto& [name, value] : source_.model().graph.initializers)
      if (!scope.values.contains(name)) scope.values[name] = initializer(name, value);
  }

  std::string input_name(const std::string& name) const {
    const auto given = request_.input_names.find(name);
    return unique_input(given == request_.input_names.end() ? name : given->second);
  }

  std::string unique_input(const std::string& name) const {
    std::string result = graph_name(name);
    while (segment_.graph.find_input(result) != nullptr) result += '_';
    return result;
  }

  Operand initializer(const std::string& name, const HostValue& value) {
    if (!request_.parameters.contains(name) || !source_.is_read_from(name, request_.first_node)) return {{}, value};
    const Tensor* tensor = value.tensor();
    const bool is_state = running_statistics().contains(name);
    const ValueId id = segment_.graph.add_input(is_state ? InputKind::state : InputKind::parameter, unique_input(name),
                                                TensorType{DType::f32, tensor->shape(), {}});
    segment_.parameters[segment_.graph.inputs().back().name] = *tensor;
    return {id, value, true};
  }

  /// What batch normalisation averages over steps.
  const std::set<std::string>& running_statistics() {
    if (!statistics_) {
      statistics_.emplace();
      for (const OnnxNode& node : source_.model().graph.nodes)
        if (node.op == "BatchNormalization" && node.domain.empty() && node.inputs.size() == 5)
          statistics_->insert({node.inputs[3], node.inputs[4]});
    }
    return *statistics_;
  }

  std::vector<Operand> operands_of(const OnnxNode& node, const Scope& scope) const {
    std::vector<Operand> operands;
    for (const std::string& name : node.inputs) {
      if (name.empty()) {
        operands.emplace_back();
        continue;
      }
      const Operand* found = scope.find(name);
      if (found == nullptr) fail_unknown(node, name, scope);
      operands.push_back(*found);
    }
    while (!operands.empty() && operands.back().is_absent()) operands.pop_back();
    return operands;
  }

  [[noreturn]] void fail_unknown(const OnnxNode& node, const std::string& name, const Scope& scope) const {
    for (const Scope* level = &scope; level != nullptr; level = level->outer) {
      const auto unusable = level->graph->unusable_initializers.find(name);
      if (unusable != level->graph->unusable_initializers.end())
        fail(ErrorKind::usage, "[{}] its operand '{}' {}, which weft has not", describe(node), name, unusable->second);
    }
    fail(ErrorKind::data, "[{}] reads '{}', which nothing before it computes; the file is damaged", describe(node),
         name);
  }

  const Operator& operator_of(const OnnxNode& node) const {
    const Operator* found = source_.operators().find(node.domain, node.op);
    if (found == nullptr) fail(ErrorKind::usage, "[{}] weft has no such operator", describe(node));
    return *found;
  }

  void lower(const OnnxNode& node, Scope& scope) {
    if (loops_ > 0) count_unrolled();
    if (node.domain.empty()) {
      if (node.op == kIf && lower_if(node, scope)) return;
      if (node.op == kLoop && lower_loop(node, scope)) return;
    }
    const Operator& op = operator_of(node);
    const auto operands = operands_of(node, scope);
    const bool is_known = std::all_of(operands.begin(), operands.end(), [](const Operand& operand) {
      return operand.is_absent() || (operand.known && !operand.is_trained);
    });
    if (is_known && !op.is_random && !stays_integer(op, operands) && fold(node, op, operands, scope)) return;
    if (!op.convert || (op.run && holds_no_tensor(operands))) cut_before(node);
    NodeContext context(node, source_.opset_of(node.domain), segment_.graph, operands, request_.is_training,
                        request_.is_frozen);
    try {
      set_outputs(node, convert(op, context), scope);
    } catch (const NeedsHost&) {
      cut_before(node);
    }
  }

  /// The host runs the node.
  [[noreturn]] static void cut_before(const OnnxNode& node) {
    Cut cut{true, {}};
    for (const std::string& name : names_read_by(node)) cut.needed.insert(name);
    throw cut;
  }

  bool stays_integer(const Operator& op, const std::vector<Operand>& operands) const {
    if (!op.keeps_integers || request_.is_training || operands.size() < 2) return false;
    const Tensor* tensor = operands[0].known ? operands[0].known->tensor() : nullptr;
    const Tensor* scale = operands[1].known ? operands[1].known->tensor() : nullptr;
    if (tensor == nullptr || scale == nullptr || scale->dtype() != DType::f32) return false;
    return tensor->dtype() == DType::i8 || tensor->dtype() == DType::u8 || is_packed(tensor->dtype());
  }

  std::vector<ValueId> convert(const Operator& op, NodeContext& context) const {
    try {
      return op.convert(context);
    } catch (const Error& error) {
      const std::string what = error.what();
      const std::string node = "[" + describe(context.node()) + "]";
      if (error.kind() == ErrorKind::internal || what.starts_with(node)) throw;
      fail(error.kind(), "{} {}", node, what);
    }
  }

  void set_outputs(const OnnxNode& node, const std::vector<ValueId>& results, Scope& scope) const {
    for (size_t index = 0; index < node.outputs.size(); ++index) {
      if (node.outputs[index].empty()) continue;
      if (index >= results.size() || !results[index].valid())
        fail(ErrorKind::usage, "[{}] weft does not compute its output {}, '{}'", describe(node), index,
             node.outputs[index]);
      // The shape of a value is known without its numbers.
      const Node* producer = segment_.graph.producer(results[index]);
      if (producer != nullptr && is_constant_tensor(*producer))
        scope.values[node.outputs[index]] = {{}, constant_of(*producer)->tensor()};
      else
        scope.values[node.outputs[index]] = {results[index], std::nullopt};
    }
  }

  /// Computes it now where all operands are known; false where the result is too large, or the device cannot.
  bool fold(const OnnxNode& node, const Operator& op, const std::vector<Operand>& operands, Scope& scope) const {
    if (!op.convert || (op.run && holds_no_tensor(operands))) return fold_on_host(node, op, operands, scope);
    Graph scratch(registry_, "folded");
    NodeContext context(node, source_.opset_of(node.domain), scratch, operands, false);
    std::vector<ValueId> results;
    try {
      results = convert(op, context);
    } catch (const NeedsHost&) {
      return fold_on_host(node, op, operands, scope);
    }
    int64_t operand_bytes = 0, result_bytes = 0;
    for (const Operand& operand : operands)
      if (operand.known && operand.known->tensor() != nullptr) operand_bytes += operand.known->tensor()->bytes();
    for (const ValueId result : results)
      if (result.valid()) result_bytes += scratch.type(result).bytes();
    if (result_bytes > std::max(operand_bytes, kFoldedBytes)) return false;
    if (request_.keeps_repeats && repeats(node) && scratch.shape(results.at(0)).rank() > 1) return false;
    const auto tensors = evaluate(scratch);
    if (!tensors) return false;
    for (size_t index = 0; index < node.outputs.size() && index < results.size(); ++index)
      if (results[index].valid())
        scope.values[node.outputs[index]] = {{}, (*tensors)[static_cast<size_t>(results[index].index)]};
    return true;
  }

  bool fold_on_host(const OnnxNode& node, const Operator& op, const std::vector<Operand>& operands,
                    Scope& scope) const {
    if (!op.run || has_graphs(node)) return false;
    std::vector<const HostValue*> inputs;
    for (const Operand& operand : operands) inputs.push_back(operand.known ? &*operand.known : nullptr);
    const auto results = op.run(HostContext(node, source_.opset_of(node.domain), inputs, {}));
    for (size_t index = 0; index < node.outputs.size() && index < results.size(); ++index)
      scope.values[node.outputs[index]] = {{}, results[index]};
    return true;
  }

  static bool repeats(const OnnxNode& node) {
    return node.op == "Expand" || node.op == "Tile" || node.op == "ConstantOfShape";
  }

  /// Texts, sequences and absent values are of no graph.
  static bool holds_no_tensor(const std::vector<Operand>& operands) {
    return std::any_of(operands.begin(), operands.end(),
                       [](const Operand& operand) { return operand.known && operand.known->tensor() == nullptr; });
  }

  static bool has_graphs(const OnnxNode& node) {
    return std::any_of(node.attributes.begin(), node.attributes.end(), [](const auto& entry) {
      return std::holds_alternative<std::shared_ptr<const OnnxGraph>>(entry.second.value);
    });
  }

  /// All values of a graph without inputs.
  std::optional<std::vector<Tensor>> evaluate(const Graph& graph) const {
    std::vector<Tensor> tensors(graph.values().size());
    for (size_t index = 0; index < graph.nodes().size(); ++index) {
      const Node& node = graph.nodes()[index];
      if (is_constant_tensor(node)) {
        tensors[static_cast<size_t>(node.outputs[0].index)] = constant_of(node)->tensor();
        continue;
      }
      std::vector<Tensor> inputs;
      for (const ValueId input : node.inputs) inputs.push_back(tensors[static_cast<size_t>(input.index)]);
      if (node.op->is_view) {
        tensors[static_cast<size_t>(node.outputs[0].index)] = inputs[0].reinterpreted(graph.type(node.outputs[0]));
        continue;
      }
      const auto results = evaluate_(signature_of(graph, NodeId{static_cast<int32_t>(index)}), inputs);
      if (!results) return std::nullopt;
      for (size_t output = 0; output < results->size(); ++output)
        tensors[static_cast<size_t>(node.outputs[output].index)] = (*results)[output];
    }
    return tensors;
  }

  // --- control flow whose course is known ---------------------------------------------------------------------------

  static const OnnxGraph* find_graph(const OnnxNode& node, const std::string& name) {
    const auto found = node.attributes.find(name);
    if (found == node.attributes.end()) return nullptr;
    const auto* graph = std::get_if<std::shared_ptr<const OnnxGraph>>(&found->second.value);
    return graph == nullptr ? nullptr : graph->get();
  }

  /// A node or a turn of a loop. Loops within loops multiply: the host runs what would become too much.
  void count_unrolled() {
    if (++unrolled_ > kMostUnrolledInAll) throw Cut{true, {}};
  }

  void lower_body(const OnnxGraph& graph, Scope& scope) {
    for (const auto& [name, value] : graph.initializers) scope.values[name] = {{}, value};
    for (const OnnxNode& node : graph.nodes) lower(node, scope);
  }

  static Operand result_of(const OnnxNode& node, const OnnxGraph& graph, size_t index, const Scope& scope) {
    if (index >= graph.outputs.size())
      fail(ErrorKind::data, "[{}] its graph has {} outputs, {} are wanted", describe(node), graph.outputs.size(),
           node.outputs.size());
    const Operand* found = scope.find(graph.outputs[index].name);
    if (found == nullptr)
      fail(ErrorKind::data, "[{}] its graph never computes its output '{}'", describe(node), graph.outputs[index].name);
    return *found;
  }

  static const Tensor* known_tensor(const Operand& operand) {
    return operand.known && !operand.is_trained ? operand.known->tensor() : nullptr;
  }

  bool lower_if(const OnnxNode& node, Scope& scope) {
    const auto operands = operands_of(node, scope);
    if (operands.size() != 1) fail(ErrorKind::data, "[{}] wants one condition", describe(node));
    const Tensor* condition = known_tensor(operands[0]);
    if (condition == nullptr && operands[0].id.valid()) throw NeedsValue{node.inputs[0]};
    if (condition == nullptr || condition->elements() != 1)
      fail(ErrorKind::data, "[{}] wants one boolean as its condition", describe(node));
    const bool is_true = integers_of(*condition)[0] != 0;
    const OnnxGraph* branch = find_graph(node, is_true ? "then_branch" : "else_branch");
    if (branch == nullptr) fail(ErrorKind::data, "[{}] has no graph for this condition", describe(node));
    Scope inner{branch, &scope};
    lower_body(*branch, inner);
    for (size_t index = 0; index < node.outputs.size(); ++index)
      if (!node.outputs[index].empty()) scope.values[node.outputs[index]] = result_of(node, *branch, index, inner);
    return true;
  }

  /// Turn by turn, where their number is known and nothing that a run computes ends it before. Results that are
  /// gathered over the turns need them to be in the graph, so those stay with the host.
  bool lower_loop(const OnnxNode& node, Scope& scope) {
    const auto operands = operands_of(node, scope);
    const OnnxGraph* body = find_graph(node, "body");
    if (body == nullptr) fail(ErrorKind::data, "[{}] has no body", describe(node));
    if (body->inputs.size() < 2)
      fail(ErrorKind::data, "[{}] its body has {} inputs; a body reads the turn and the condition, the file is damaged",
           describe(node), body->inputs.size());
    const size_t carried = body->inputs.size() - 2;
    if (operands.empty() || operands[0].is_absent() || node.outputs.size() > carried ||
        node.inputs.size() != carried + 2)
      return false;
    const Tensor* turns = known_tensor(operands[0]);
    if (turns == nullptr || turns->elements() != 1) return false;
    const int64_t count = integers_of(*turns)[0];
    if (count < 0 || count > kMostUnrolled / static_cast<int64_t>(body->nodes.size() + 1)) return false;
    Operand condition;
    if (operands.size() > 1 && !operands[1].is_absent()) condition = operands[1];
    std::vector<Operand> state;
    for (size_t index = 0; index < carried; ++index)
      state.push_back(index + 2 < operands.size() ? operands[index + 2] : Operand{});
    for (int64_t turn = 0; turn < count; ++turn) {
      if (!condition.is_absent()) {
        const Tensor* goes_on = known_tensor(condition);
        if (goes_on == nullptr || goes_on->elements() != 1) return false;
        if (integers_of(*goes_on)[0] == 0) break;
      }
      Scope inner{body, &scope};
      Tensor number(DType::i64, Shape{});
      *number.data_as<int64_t>() = turn;
      inner.values[body->inputs[0].name] = {{}, HostValue(number)};
      Tensor yes(DType::boolean, Shape{});
      *yes.data_as<uint8_t>() = 1;
      inner.values[body->inputs[1].name] = condition.is_absent() ? Operand{{}, HostValue(yes)} : condition;
      for (size_t index = 0; index < carried; ++index) inner.values[body->inputs[index + 2].name] = state[index];
      count_unrolled();
      ++loops_;
      lower_body(*body, inner);
      --loops_;
      condition = result_of(node, *body, 0, inner);
      for (size_t index = 0; index < carried; ++index) state[index] = result_of(node, *body, index + 1, inner);
    }
    for (size_t index = 0; index < node.outputs.size(); ++index)
      if (!node.outputs[index].empty()) scope.values[node.outputs[index]] = state[index];
    return true;
  }

  // --- what the segment gives ----------------------------------------------------------------------------------------

  void add_outputs(const Scope& scope, size_t next) {
    for (const auto& [name, operand] : scope.values) {
      if (!source_.is_read_from(name, next) && !segment_.needed.contains(name)) continue;
      if (operand.known && !operand.is_trained) {
        segment_.known[name] = *operand.known;
        continue;
      }
      if (segment_.inputs.contains(name) || operand.is_trained) continue;  // live before it, and still
      std::string output = graph_name(name);
      while (segment_.graph.find_output(output) != nullptr) output += '_';
      segment_.graph.add_output(output, operand.id);
      segment_.outputs[name] = output;
    }
  }

  const LowerableModel& source_;
  const OpRegistry& registry_;
  const Evaluate& evaluate_;
  const LowerRequest& request_;
  Segment segment_;
  int64_t unrolled_ = 0;
  int loops_ = 0;  // around the node that is lowered; what throws ends the segment
  std::optional<std::set<std::string>> statistics_;
};

void count_missing(const OnnxGraph& graph, const OperatorTable& operators,
                   std::map<std::string, std::vector<std::string>>& missing) {
  for (const OnnxNode& node : graph.nodes) {
    if (operators.find(node.domain, node.op) == nullptr)
      missing[node.domain.empty() ? node.op : node.domain + "." + node.op].push_back(
          node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name);
    for (const auto& [name, attribute] : node.attributes)
      if (const auto* inner = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute.value))
        count_missing(**inner, operators, missing);
  }
}

}  // namespace

std::vector<std::string> missing_operators(const Model& model, const OperatorTable& operators) {
  constexpr size_t kMostNames = 3;
  std::map<std::string, std::vector<std::string>> missing;
  count_missing(model.graph, operators, missing);
  std::vector<std::string> lines;
  for (const auto& [op, nodes] : missing) {
    std::string line = fmt::format("{} ({}): ", op, nodes.size());
    for (size_t index = 0; index < nodes.size() && index < kMostNames; ++index)
      line += (index > 0 ? ", '" : "'") + nodes[index] + "'";
    if (nodes.size() > kMostNames) line += ", ...";
    lines.push_back(line);
  }
  return lines;
}

LowerableModel::LowerableModel(Model model, OperatorTable operators, const OpRegistry& registry, Evaluate evaluate)
    : model_(normalize(std::move(model))),
      operators_(std::move(operators)),
      registry_(registry),
      evaluate_(std::move(evaluate)) {
  const auto missing = missing_operators(model_, operators_);
  if (!missing.empty()) {
    std::string lines;
    for (const std::string& line : missing) lines += "\n  " + line;
    fail(ErrorKind::usage, "'{}' uses operators that weft has not, with the nodes that do:{}", model_.path, lines);
  }
  const auto& nodes = model_.graph.nodes;
  for (size_t index = 0; index < nodes.size(); ++index)
    for (const std::string& name : names_read_by(nodes[index])) last_use_[name] = index;
  for (const ValueInfo& output : model_.graph.outputs) last_use_[output.name] = nodes.size();
}

Segment LowerableModel::lower(const LowerRequest& request) const {
  return Lowering(*this, registry_, evaluate_, request).run();
}

bool LowerableModel::is_read_from(const std::string& value, size_t node) const {
  const auto found = last_use_.find(value);
  return found != last_use_.end() && found->second >= node;
}

int64_t LowerableModel::opset_of(const std::string& domain) const {
  if (domain.empty()) return model_.opset();
  const auto found = model_.opsets.find(domain);
  return found == model_.opsets.end() ? 1 : found->second;
}

}  // namespace weft::onnx
