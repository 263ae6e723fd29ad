#include "weft/engine/onnx_session.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "weft/base/error.h"
#include "weft/base/hash128.h"
#include "weft/base/names.h"
#include "weft/graph/constant.h"
#include "weft/graph/constant_node.h"
#include "weft/models/model.h"

namespace weft::engine {

using onnx::HostValue;

struct OnnxSession::Plan {
  std::string key;
  onnx::Segment segment;
  CompiledStep step;
  std::unique_ptr<Executor> executor;  // null where nothing is computed, or the arena has grown since
};

namespace {

/// A model of its own of a graph that a node holds. What it reads of the model around it become inputs, behind its own.
onnx::Model body_model(const onnx::Model& outer, const onnx::OnnxGraph& graph) {
  onnx::Model model;
  model.path = outer.path;
  model.opsets = outer.opsets;
  model.graph = graph;
  std::set<std::string> own;
  for (const onnx::ValueInfo& input : graph.inputs) own.insert(input.name);
  for (const auto& [name, value] : graph.initializers) own.insert(name);
  onnx::OnnxNode whole;
  whole.attributes["body"].value = std::make_shared<const onnx::OnnxGraph>(graph);
  for (const std::string& name : onnx::names_read_by(whole)) {
    if (own.contains(name)) continue;
    onnx::ValueInfo info;
    info.name = name;
    model.graph.inputs.push_back(info);
  }
  return model;
}

void check_shape(const std::string& path, const onnx::ValueInfo& info, const HostValue& value,
                 std::map<std::string, int64_t>& symbols) {
  const Shape* shape = value.tensor() != nullptr    ? &value.tensor()->shape()
                       : value.strings() != nullptr ? &value.strings()->shape
                                                    : nullptr;
  if (shape == nullptr || !info.shape) return;
  if (!onnx::fits(info, *shape))
    fail(ErrorKind::shape, "'{}': the input '{}' is {}, but the model wants {}", path, info.name, describe(value),
         describe(info));
  for (int axis = 0; axis < shape->rank(); ++axis) {
    const onnx::Dimension& dimension = (*info.shape)[static_cast<size_t>(axis)];
    if (dimension.symbol.empty()) continue;
    const auto [known, is_new] = symbols.emplace(dimension.symbol, (*shape)[axis]);
    if (!is_new && known->second != (*shape)[axis])
      fail(ErrorKind::shape, "'{}': the input '{}' is {}, but the model has {}, and '{}' is {} in another input", path,
           info.name, describe(value), describe(info), dimension.symbol, known->second);
  }
}

}  // namespace

OnnxSession::OnnxSession(onnx::Model model, const OpRegistry& registry, const Device& device, SessionOptions options)
    : registry_(registry),
      device_(device),
      options_(std::move(options)),
      sharing_(device, constants_),
      lowerable_(std::move(model), onnx::standard_operators(), registry,
                 [this](const NodeSignature& node, const std::vector<Tensor>& operands) {
                   return sharing_.evaluate(node, operands);
                 }) {
  const onnx::OnnxGraph& graph = lowerable_.model().graph;
  for (const auto& [name, value] : graph.initializers)
    if (lowerable_.is_read_from(name, graph.nodes.size())) known_outputs_.push_back(name);
}

OnnxSession::~OnnxSession() = default;

std::vector<onnx::ValueInfo> OnnxSession::inputs() const {
  std::vector<onnx::ValueInfo> wanted;
  for (const onnx::ValueInfo& info : model().graph.inputs)
    if (!model().graph.initializers.contains(info.name)) wanted.push_back(info);
  return wanted;
}

OnnxSession::Values OnnxSession::check_inputs(const Values& inputs) const {
  const std::string& path = model().path;
  std::map<std::string, int64_t> symbols;
  std::vector<std::string> names;
  Values values;
  for (const onnx::ValueInfo& info : model().graph.inputs) {
    names.push_back(info.name);
    const auto given = inputs.find(info.name);
    if (given == inputs.end()) {
      if (model().graph.initializers.contains(info.name)) continue;
      if (info.kind == onnx::ValueInfo::Kind::optional) {
        values[info.name] = {};
        continue;
      }
      fail(ErrorKind::usage, "'{}': the input '{}' ({}) is missing", path, info.name, describe(info));
    }
    const Tensor* tensor = given->second.tensor();
    if (tensor != nullptr && info.dtype && info.kind == onnx::ValueInfo::Kind::tensor && tensor->dtype() != *info.dtype)
      fail(ErrorKind::shape, "'{}': the input '{}' is {}, but the model wants {}", path, info.name,
           describe(given->second), describe(info));
    check_shape(path, info, given->second, symbols);
    values[info.name] = given->second;
  }
  for (const auto& [name, value] : inputs)
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail(ErrorKind::usage, "'{}' has no input '{}'{}", path, name, suggestion(name, names));
  return values;
}

namespace {

/// What tells two values of one description apart. Texts have their lengths before them, so that no two lists of texts
/// read alike.
void append_content(std::string& key, const HostValue& value) {
  if (const Tensor* tensor = value.tensor()) {
    key += to_string(ConstantData(*tensor).hash());
  } else if (const onnx::StringTensor* texts = value.strings()) {
    std::string all;
    for (const std::string& text : texts->values) all += std::to_string(text.size()) + ':' + text;
    key += to_string(hash128(std::as_bytes(std::span(all))));
  } else if (const std::vector<HostValue>* parts = value.sequence()) {
    for (const HostValue& part : *parts) {
      key += '(' + describe(part);
      append_content(key, part);
      key += ')';
    }
  }
}

}  // namespace

std::string OnnxSession::key_of(const Values& values, size_t node, const std::set<std::string>& known) const {
  std::string key = std::to_string(node);
  for (const auto& [name, value] : values) {
    if (!lowerable_.is_read_from(name, node)) continue;
    key += '|' + name + ':' + describe(value);
    // A plan holds what is no tensor as it was.
    if (value.tensor() != nullptr && !known.contains(name)) continue;
    key += '=';
    append_content(key, value);
  }
  return key;
}

OnnxSession::Plan& OnnxSession::find_plan(const Values& values, size_t node) {
  const auto started = std::chrono::steady_clock::now();
  std::set<std::string>& deciding = deciding_[node];
  const std::string key = key_of(values, node, deciding);
  const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const auto& plan) { return plan->key == key; });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
    return *plans_.front();
  }
  onnx::LowerRequest request;
  request.first_node = node;
  for (const auto& [name, value] : values) {
    const bool is_known = value.tensor() == nullptr || deciding.contains(name);
    request.live[name] = is_known ? onnx::LiveValue(value) : onnx::LiveValue(value.tensor()->type());
  }
  std::unique_ptr<Plan> plan;
  while (plan == nullptr) {
    try {
      plan.reset(new Plan{{}, lowerable_.lower(request), {Graph(registry_), {}, {}, 0, {}}, nullptr});
    } catch (const onnx::NeedsValue& needs) {
      deciding.insert(needs.value);
      request.live[needs.value] = values.at(needs.value);
    }
  }
  plan->key = key_of(values, node, deciding);
  if (!plan->segment.outputs.empty()) plan->step = compile(plan->segment.graph, sharing_, options_.compile);
  add_plan(std::move(plan));
  if (options_.on_plan) {
    const CompiledStep& step = plans_.front()->step;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    options_.on_plan({seconds, step.plan.arena_bytes, step.plan.constant_bytes, step.graph.nodes().size(),
                      models::multiply_adds(plans_.front()->segment.graph), plans_.size()});
  }
  return *plans_.front();
}

void OnnxSession::add_plan(std::unique_ptr<Plan> plan) {
  plans_.push_front(std::move(plan));
  while (plans_.size() > options_.most_plans) plans_.pop_back();
  std::vector<const Graph*> graphs;
  for (const auto& each : plans_) graphs.push_back(&each->step.graph);
  constants_.keep_those_of(graphs);
  const int64_t bytes = plans_.front()->step.plan.arena_bytes;
  if (arena_ != nullptr && arena_->bytes() >= bytes) return;
  for (const auto& each : plans_) each->executor.reset();  // they lie in the smaller arena
  arena_ = std::make_unique<Arena>(device_.memory());
  arena_->reserve(bytes);
}

Executor* OnnxSession::executor_of(Plan& plan) {
  if (plan.executor == nullptr && !plan.segment.outputs.empty()) {
    plan.executor = std::make_unique<Executor>(plan.step.graph, plan.step.plan, device_, arena_.get());
    State none;
    plan.executor->bind_state(none);
  }
  return plan.executor.get();
}

OnnxSession::Values OnnxSession::run_segments(Values values, bool runs_last) {
  const auto& nodes = model().graph.nodes;
  for (const std::string& name : known_outputs_) values.emplace(name, model().graph.initializers.at(name));
  size_t node = 0;
  do {
    Plan& plan = find_plan(values, node);
    const onnx::Segment& segment = plan.segment;
    Executor* const executor = executor_of(plan);
    if (executor != nullptr && (runs_last || segment.next_node < nodes.size())) {
      for (const auto& [name, input] : segment.inputs)
        if (executor->has_batch(input)) executor->bind_batch(input, values.at(name).tensor()->data());
      executor->run();
      for (const auto& [name, output] : segment.outputs) values[name] = executor->output(output);
    }
    for (const auto& [name, value] : segment.known) values[name] = value;
    node = segment.next_node;
    if (node == nodes.size()) break;
    if (segment.next_on_host) {
      run_on_host(nodes[node], values);
      ++node;
    } else {
      deciding_[node].insert(segment.needed.begin(), segment.needed.end());
    }
  } while (node < nodes.size());
  return values;
}

void OnnxSession::prepare(const std::map<std::string, HostValue>& inputs) { run_segments(check_inputs(inputs), false); }

std::map<std::string, HostValue> OnnxSession::run(const std::map<std::string, HostValue>& inputs) {
  const Values values = run_segments(check_inputs(inputs), true);
  Values outputs;
  for (const onnx::ValueInfo& output : model().graph.outputs) {
    const auto found = values.find(output.name);
    if (found == values.end())
      fail(ErrorKind::data, "'{}' never computes its output '{}'; the file is damaged", model().path, output.name);
    outputs[output.name] = found->second;
  }
  return outputs;
}

void OnnxSession::run_on_host(const onnx::OnnxNode& node, Values& values) {
  const onnx::Operator* op = lowerable_.operators().find(node.domain, node.op);
  check(op != nullptr && op->run, "the host cannot run a node that it was given");
  std::vector<const HostValue*> inputs;
  for (const std::string& name : node.inputs) {
    const auto found = values.find(name);
    const auto initial = model().graph.initializers.find(name);
    const bool is_there = found != values.end() || initial != model().graph.initializers.end();
    if (!name.empty() && !is_there)
      fail(ErrorKind::data, "[{}] reads '{}', which nothing before it computes; the file is damaged", describe(node),
           name);
    inputs.push_back(name.empty() ? nullptr : found != values.end() ? &found->second : &initial->second);
  }
  while (!inputs.empty() && inputs.back() == nullptr) inputs.pop_back();
  const onnx::HostContext context(node, lowerable_.opset_of(node.domain), inputs,
                                  [&](const onnx::OnnxGraph& graph, const std::vector<HostValue>& given) {
                                    return run_body(graph, given, values);
                                  });
  const auto results = op->run(context);
  for (size_t index = 0; index < node.outputs.size(); ++index) {
    if (node.outputs[index].empty()) continue;
    if (index >= results.size())
      fail(ErrorKind::usage, "[{}] weft does not compute its output {}", describe(node), index);
    values[node.outputs[index]] = results[index];
  }
}

std::vector<HostValue> OnnxSession::run_body(const onnx::OnnxGraph& graph, const std::vector<HostValue>& inputs,
                                             const Values& around) {
  auto& session = bodies_[&graph];
  if (session == nullptr)
    session = std::make_unique<OnnxSession>(body_model(model(), graph), registry_, device_, options_);
  Values values;
  const auto& wanted = session->model().graph.inputs;
  for (size_t index = 0; index < wanted.size(); ++index) {
    const std::string& name = wanted[index].name;
    if (index < graph.inputs.size()) {
      if (index < inputs.size()) values[name] = inputs[index];
      continue;
    }
    const auto found = around.find(name);
    const auto initial = model().graph.initializers.find(name);
    if (found != around.end())
      values[name] = found->second;
    else if (initial != model().graph.initializers.end())
      values[name] = initial->second;
  }
  auto results = session->run(values);
  std::vector<HostValue> outputs;
  for (const onnx::ValueInfo& output : graph.outputs) outputs.push_back(results.at(output.name));
  return outputs;
}

int64_t OnnxSession::constant_bytes() const {
  std::map<const void*, int64_t> bytes;  // by address: what is shared counts once
  for (const auto& plan : plans_)
    for (const Node& node : plan->step.graph.nodes())
      if (is_constant_tensor(node))
        bytes.emplace(constant_of(node)->tensor().data(), constant_of(node)->type().bytes());
  int64_t sum = 0;
  for (const auto& [address, size] : bytes) sum += size;
  return sum;
}

}  // namespace weft::engine
