#include "weft/engine/engine.h"

#include <algorithm>
#include <set>

#include "weft/base/error.h"
#include "weft/base/memory.h"
#include "weft/graph/constant_node.h"
#include "weft/graph/symbolic_text.h"
#include "weft/tensor/layout.h"

namespace weft::engine {

namespace {

std::vector<Port> inputs_of(const SymbolicGraph& graph) {
  std::vector<Port> ports;
  for (const GraphInput& input : graph.inputs()) ports.push_back({input.name, to_string(graph.type(input.value))});
  return ports;
}

std::vector<Port> outputs_of(const SymbolicGraph& graph) {
  std::vector<Port> ports;
  for (const GraphOutput& output : graph.outputs()) ports.push_back({output.name, to_string(graph.type(output.value))});
  return ports;
}

bool have_same_names(const std::vector<Port>& a, const std::vector<Port>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Port& one, const Port& other) { return one.name == other.name; });
}

/// An input or output of a name that another one has; empty: none.
std::string name_taken_twice(const SymbolicGraph& graph) {
  std::set<std::string> names;
  for (const GraphInput& input : graph.inputs())
    if (!names.insert(input.name).second) return input.name;
  for (const GraphOutput& output : graph.outputs())
    if (!names.insert(output.name).second) return output.name;
  return {};
}

}  // namespace

Engine::Engine(DeployedModel model, const OpRegistry& registry, const Device& device, EngineOptions options)
    : model_(std::move(model)), device_(device), options_(std::move(options)) {
  DType precision = options_.precision.value_or(model_.precision);
  if (precision != DType::f32 && !device_.computes_fast(precision)) {
    if (options_.precision)
      fail(ErrorKind::usage, "{} cannot run in {}: {}; ask for f32", name(), name_of(precision),
           device_.what_lacks(precision));
    precision = DType::f32;
  }
  options_.compile.precision.dtype = precision;
  options_.compile.threads = device_.threads();
  read_graphs(registry);
}

std::string Engine::name() const { return "'" + (model_.source.empty() ? model_.name : model_.source) + "'"; }

void Engine::read_graphs(const OpRegistry& registry) {
  for (const DeployedGraph& given : model_.graphs) {
    const auto bad = [&](const std::string& what) { fail(ErrorKind::data, "{}: {}; compile it again", name(), what); };
    Source source{given.batch, SymbolicGraph(registry)};
    try {
      source.graph = parse_symbolic_graph(given.text, registry, model_.constants);
    } catch (const Error& error) {
      bad(error.what());
    }
    const SymbolicGraph& graph = source.graph;
    for (const GraphInput& input : graph.inputs())
      if (input.kind != InputKind::batch)
        bad(fmt::format("'{}' is a {}, and inference has none", input.name, name_of(input.kind)));
    if (graph.outputs().empty() || !graph.updates().empty()) bad("its graph is not one of inference");
    if (graph.inputs().empty()) bad("its graph reads nothing, so that there is nothing to run");
    if (const std::string name = name_taken_twice(graph); !name.empty())
      bad(fmt::format("two of its inputs and outputs are called '{}'", name));
    const std::set<std::string> symbols = graph.symbols();
    if (given.batch == 0 ? symbols != std::set<std::string>{kBatchSymbol} : !symbols.empty())
      bad("its graph has other symbols than that of the batch");
    if (!have_same_names(inputs_of(graph), model_.inputs) || !have_same_names(outputs_of(graph), model_.outputs))
      bad("its graph has other inputs or outputs than it says");
    check_pictures(graph, given.batch);
    if (given.batch > 0) batches_.push_back(given.batch);
    sources_.push_back(std::move(source));
  }
  const SymbolicGraph& first = sources_.at(0).graph;
  if (inputs_of(first) != model_.inputs || outputs_of(first) != model_.outputs)
    fail(ErrorKind::data, "{}: its inputs or outputs have other types than it says; compile it again", name());
  const bool is_open = batches_.size() < sources_.size();
  if (is_open && sources_.size() > 1)
    fail(ErrorKind::data, "{}: it has graphs beside the one for any batch; compile it again", name());
}

const Engine::Source& Engine::source_for(int64_t batch) const {
  if (batch < 1) fail(ErrorKind::usage, "{}: a batch of {} has no samples; give 1 or more", name(), batch);
  std::string known;
  for (const Source& source : sources_) {
    if (source.batch == 0 || source.batch == batch) return source;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", source.batch);
  }
  fail(ErrorKind::usage, "{} is for a batch of {}, not of {}; `weft compile --batch {}` makes one that is", name(),
       known, batch, batch);
}

/// Pictures are written as f32[batch,C,H,W] where the first input begins.
void Engine::check_pictures(const SymbolicGraph& graph, int64_t batch) const {
  if (!model_.pictures) return;
  const SymbolicType& type = graph.type(graph.inputs()[0].value);
  const SymbolicType wanted{DType::f32,
                            {batch == 0 ? Expression::symbol(kBatchSymbol) : Expression(batch),
                             model_.pictures->channels, model_.pictures->height, model_.pictures->width}};
  if (type != wanted)
    fail(ErrorKind::data, "{}: its pictures are {}, but its first input '{}' is {}; compile it again", name(),
         to_string(wanted), graph.inputs()[0].name, to_string(type));
}

TensorType Engine::input_type(size_t index, int64_t batch) const {
  const Source& source = source_for(batch);
  return type_of(model_.inputs.at(index), source, source.graph.inputs().at(index).value, batch);
}

TensorType Engine::output_type(size_t index, int64_t batch) const {
  const Source& source = source_for(batch);
  return type_of(model_.outputs.at(index), source, source.graph.outputs().at(index).value, batch);
}

TensorType Engine::type_of(const Port& port, const Source& source, ValueId value, int64_t batch) const {
  const SymbolicType& type = source.graph.type(value);
  const SymbolBindings bindings = source.bindings(batch);
  std::vector<int64_t> dims;
  for (const Expression& dim : type.dims) dims.push_back(dim.evaluate(bindings));
  const TensorType bound{type.dtype, Shape(dims), {}};
  if (!has_bounded_size(bound))
    fail(ErrorKind::usage, "{}: '{}' ({}) is more than any memory holds with a batch of {}; give a smaller one", name(),
         port.name, port.type, batch);
  return bound;
}

CompiledStep Engine::compile_for(int64_t batch) {
  const Source& source = source_for(batch);
  const SharingBackend sharing(device_, constants_, model_.mapping.get());
  return compile_inference(bind_symbols(source.graph, source.bindings(batch)), sharing, options_.compile);
}

const CompiledStep& Engine::plan(int64_t batch) {
  const std::lock_guard lock(mutex_);
  if (const auto found = plans_.find(batch); found != plans_.end()) return found->second;
  const CompiledStep& step = plans_.emplace(batch, compile_for(batch)).first->second;
  std::vector<const Graph*> graphs;
  for (const auto& [size, made] : plans_) graphs.push_back(&made.graph);
  constants_.keep_those_of(graphs);
  release_free_memory();  // of what was only a step towards the plan
  if (options_.on_plan) options_.on_plan(batch, step);
  return step;
}

std::map<const std::byte*, int64_t> Engine::constants_by_address() const {
  const std::lock_guard lock(mutex_);
  std::map<const std::byte*, int64_t> bytes;
  for (const auto& [batch, step] : plans_)
    for (const Node& node : step.graph.nodes())
      if (is_constant_tensor(node))
        bytes.emplace(constant_of(node)->tensor().data_as<std::byte>(), constant_of(node)->type().bytes());
  return bytes;
}

int64_t Engine::constant_bytes() const {
  int64_t sum = 0;
  for (const auto& [address, size] : constants_by_address()) sum += size;
  return sum;
}

int64_t Engine::mapped_constant_bytes() const {
  int64_t sum = 0;
  if (model_.mapping == nullptr) return sum;
  const auto file = std::as_bytes(model_.mapping->bytes());
  for (const auto& [address, size] : constants_by_address())
    if (address >= file.data() && address < file.data() + file.size()) sum += size;
  return sum;
}

std::unique_ptr<Executor> Engine::make_executor(int64_t batch, Arena& arena) {
  const CompiledStep& step = plan(batch);
  const std::lock_guard lock(mutex_);
  auto executor = std::make_unique<Executor>(step.graph, step.plan, device_, &arena);
  State none;
  executor->bind_state(none);
  return executor;
}

Executor& Stream::executor_for(int64_t batch) {
  const auto found = executors_.find(batch);
  if (found != executors_.end()) return *found->second;
  const int64_t bytes = engine_.plan(batch).plan.arena_bytes;
  if (arena_ == nullptr || arena_->bytes() < bytes) {
    executors_.clear();  // they lie in the smaller arena
    arena_ = std::make_unique<Arena>(engine_.device().memory());
    arena_->reserve(bytes);
  }
  return *executors_.emplace(batch, engine_.make_executor(batch, *arena_)).first->second;
}

void Stream::run(int64_t batch, Profile* profile) {
  const std::vector<Port>& ports = engine_.model().inputs;
  for (size_t index = 0; index < ports.size(); ++index)
    if (inputs_[index] == nullptr)
      fail(ErrorKind::usage, "the input '{}' ({}) is not set; set it before the run", ports[index].name,
           ports[index].type);
  batch_ = 0;
  Executor& executor = executor_for(batch);
  for (size_t index = 0; index < ports.size(); ++index) executor.bind_batch(ports[index].name, inputs_[index]);
  executor.run(profile);
  batch_ = batch;
}

void Stream::read_output(size_t index, std::span<std::byte> to) const {
  const Port& port = engine_.model().outputs.at(index);
  if (batch_ == 0) fail(ErrorKind::usage, "the output '{}' is of a run, and there was none; run first", port.name);
  const auto wanted = static_cast<size_t>(engine_.output_type(index, batch_).bytes());
  if (to.size() != wanted)
    fail(ErrorKind::usage, "the output '{}' takes {} bytes with a batch of {}, not {}", port.name, wanted, batch_,
         to.size());
  executors_.at(batch_)->copy_output(port.name, to.data());
}

Tensor Stream::output(size_t index) const {
  Tensor tensor(engine_.output_type(index, std::max<int64_t>(batch_, 1)));
  read_output(index, {tensor.data_as<std::byte>(), static_cast<size_t>(tensor.bytes())});
  return tensor;
}

}  // namespace weft::engine
