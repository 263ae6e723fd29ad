#include "weft/runtime/executor.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/graph/accumulation.h"
#include "weft/graph/constant_node.h"
#include "weft/graph/kept.h"
#include "weft/graph/space_copies.h"
#include "weft/plan/deferral.h"
#include "weft/runtime/transfers.h"
#include "weft/tensor/element.h"

namespace weft {

namespace {

/// A kernel with the addresses of its operands.
struct BoundStep {
  std::unique_ptr<Kernel> kernel;  // null: a view or a constant, nothing to run
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  void* workspace = nullptr;
  bool is_kept = false;
  bool is_completing = false;  // runs only where sums over several runs are complete
  bool is_on_host = false;     // works on the host's memory, beside what the device is told
};

/// A place where the address of a graph input stands, to be rewritten when the input is bound.
struct AddressSlot {
  size_t step;
  size_t operand;
  bool is_output;
};

constexpr size_t kScalarBytes = 8;  // of f32 or i64

struct CopyBack {
  const void* source;
  size_t input;  // index into graph.inputs()
  int64_t bytes;
  bool is_completing = false;
};

}  // namespace

struct Executor::Impl {
  const Graph& graph;
  const Plan& plan;
  const std::shared_ptr<MemorySpace> memory;
  const std::unique_ptr<ExecutionContext> context;
  std::shared_ptr<std::byte> arena, host_arena;
  Arena* shared_arena = nullptr;    // null: the arena's memory is the executor's alone
  const std::vector<size_t> order;  // of the steps
  bool has_copies = false;          // kept ones, of the states as they are
  bool is_pending = false;          // what is deferred is still to be run
  bool was_complete = true;         // in the last run, which has left it
  const int completing;             // index into graph.inputs(), or -1: of the scalar that says that sums are complete
  std::vector<BoundStep> steps;
  std::vector<std::vector<AddressSlot>> slots;  // per graph input
  std::vector<void*> addresses;                 // per graph input, null: not bound
  std::shared_ptr<std::byte> scalar_memory;     // the host's
  std::vector<std::byte*> scalars;              // per graph input, null where it is no scalar
  std::vector<std::byte*> latches;              // the same, as they were in the last run
  std::vector<CopyBack> copies;
  std::map<Hash128, void*> constants;                       // each content once
  std::vector<std::shared_ptr<std::byte>> constant_memory;  // of a device with memory of its own

  Impl(const Graph& the_graph, const Plan& the_plan, const Device& device)
      : graph(the_graph),
        plan(the_plan),
        memory(device.memory()),
        context(device.make_context()),
        order(order_of_run(the_plan)),
        completing(completing_input(the_graph)) {}

  /// Where the device computes in the host's memory constants lie where they are; else they are carried there, once.
  void place_constants() {
    std::map<const void*, void*> carried;
    for (const Node& node : graph.nodes()) {
      if (!is_constant_tensor(node) || constants.contains(constant_of(node)->hash())) continue;
      const Tensor& tensor = constant_of(node)->tensor();
      void* place = const_cast<void*>(tensor.data());  // which kernels see as const
      if (const auto known = carried.find(tensor.data()); known != carried.end()) {
        constants.emplace(constant_of(node)->hash(), known->second);  // under another type
        continue;
      }
      // Kernels count on the alignment of what weft allocates; a mapped file need not have it.
      const bool is_aligned = reinterpret_cast<uintptr_t>(place) % static_cast<uintptr_t>(kAlignment) == 0;
      if (!memory->is_host() || !is_aligned) {
        constant_memory.push_back(memory->allocate(tensor.bytes(), "a constant"));
        memory->copy_in(constant_memory.back().get(), tensor.data(), tensor.bytes());
        place = constant_memory.back().get();
        carried.emplace(tensor.data(), place);
      }
      constants.emplace(constant_of(node)->hash(), place);
    }
  }

  void make_scalars() {
    const size_t count = graph.inputs().size();
    scalars.resize(count);
    latches.resize(count);
    scalar_memory = memory->allocate_on_host(static_cast<int64_t>(2 * count * kScalarBytes));
    for (size_t index = 0; index < count; ++index) {
      if (graph.inputs()[index].kind != InputKind::scalar) continue;
      scalars[index] = scalar_memory.get() + 2 * index * kScalarBytes;
      latches[index] = scalars[index] + kScalarBytes;
      addresses[index] = scalars[index];
    }
  }

  void* address(ValueId value) const {
    const Placement& placement = plan.placements[static_cast<size_t>(value.index)];
    switch (placement.where) {
      case Placement::Where::arena:
        return (placement.space == Space::host ? host_arena : arena).get() + placement.offset;
      case Placement::Where::constant:
        return constants.at(constant_of(graph.node({static_cast<int32_t>(placement.offset)}))->hash());
      case Placement::Where::file:
      case Placement::Where::unused:
        return nullptr;
      default:
        return addresses[static_cast<size_t>(placement.offset)];
    }
  }

  size_t input_index(const std::string& name, bool scalar) const {
    const auto fits = [&](const GraphInput& input) {
      return input.kind == (scalar ? InputKind::scalar : InputKind::batch);
    };
    for (size_t index = 0; index < graph.inputs().size(); ++index)
      if (graph.inputs()[index].name == name && fits(graph.inputs()[index])) return index;
    std::vector<std::string> known;
    for (const GraphInput& input : graph.inputs())
      if (fits(input)) known.push_back(input.name);
    fail(ErrorKind::usage, "graph '{}' has no {} input '{}'{}", graph.name(), scalar ? "scalar" : "batch", name,
         suggestion(name, known));
  }

  void bind(size_t input, void* address_of_input) {
    addresses[input] = address_of_input;
    for (const AddressSlot& slot : slots[input]) {
      BoundStep& step = steps[slot.step];
      if (slot.is_output)
        step.outputs[slot.operand] = address_of_input;
      else
        step.inputs[slot.operand] = address_of_input;
    }
  }

  bool defers() const { return plan.deferred_from < static_cast<int>(plan.steps.size()); }
  bool is_deferred(size_t step) const { return step >= static_cast<size_t>(plan.deferred_from); }

  /// Whether sums over several runs are complete with this one.
  bool is_complete() const {
    if (completing < 0) return true;
    float value;
    std::memcpy(&value, scalars[static_cast<size_t>(completing)], sizeof value);
    return value != 0;
  }

  /// What a step reads there: a deferred one the scalars of the run that left it.
  const void* operand_address(ValueId value, size_t step) const {
    const Placement& placement = plan.placements[static_cast<size_t>(value.index)];
    if (placement.where == Placement::Where::scalar && is_deferred(step))
      return latches[static_cast<size_t>(placement.offset)];
    return address(value);
  }

  void run_step(size_t index, Profile* profile) {
    BoundStep& step = steps[index];
    if (!step.kernel) return;
    if (step.is_on_host) context->wait();  // for copies that it reads, and for those of what it writes over
    const KernelArguments arguments{step.inputs, step.outputs, step.workspace, context.get()};
    if (profile == nullptr) return step.kernel->run(arguments);
    const auto begin = std::chrono::steady_clock::now();
    step.kernel->run(arguments);
    context->wait();  // so that the time is this kernel's
    profile->seconds[index] += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  void record(ValueId value, size_t step, size_t operand, bool is_output) {
    const Placement& placement = plan.placements[static_cast<size_t>(value.index)];
    const auto where = placement.where;
    if (where == Placement::Where::scalar || where == Placement::Where::constant) return;  // where it is, it stays
    if (where != Placement::Where::arena && where != Placement::Where::file && where != Placement::Where::unused)
      slots[static_cast<size_t>(placement.offset)].push_back({step, operand, is_output});
  }

  const GraphOutput& find_output(const std::string& name) const {
    if (const GraphOutput* output = graph.find_output(name)) return *output;
    std::vector<std::string> known;
    for (const GraphOutput& output : graph.outputs()) known.push_back(output.name);
    fail(ErrorKind::usage, "graph '{}' has no output '{}'{}", graph.name(), name, suggestion(name, known));
  }
};

Executor::Executor(const Graph& graph, const Plan& plan, const Device& device, Arena* arena)
    : impl_(std::make_unique<Impl>(graph, plan, device)) {
  check(plan.has_spaces == device.memory_rules().is_separate, "a plan for a device with other memory");
  const bool shares = arena != nullptr && arena->bytes() >= plan.arena_bytes;
  if (shares) impl_->shared_arena = arena;
  impl_->arena = shares ? arena->memory() : impl_->memory->allocate(plan.arena_bytes, "the arena");
  if (plan.host_arena_bytes > 0) impl_->host_arena = impl_->memory->allocate_on_host(plan.host_arena_bytes);
  impl_->slots.resize(graph.inputs().size());
  impl_->addresses.resize(graph.inputs().size(), nullptr);
  impl_->make_scalars();
  impl_->place_constants();
  std::vector<std::unique_ptr<Kernel>> transfers =
      make_transfers(graph, plan, arena == nullptr ? nullptr : arena->file());
  impl_->steps.resize(plan.steps.size());
  const std::vector<bool> is_completing = find_completing(graph);
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const PlannedNode& planned = plan.steps[index];
    const Node& node = graph.node(planned.node);
    BoundStep& step = impl_->steps[index];
    if (transfers[index] != nullptr) {
      step.kernel = std::move(transfers[index]);
    } else if (!node.op->is_view && !is_constant_tensor(node)) {
      const NodeSignature signature = signature_of(graph, planned.node);
      step.kernel = device.make_kernel(signature, planned.kernel);
      if (step.kernel == nullptr || step.kernel->workspace_bytes() > planned.workspace_bytes)
        fail(ErrorKind::internal, "the plan runs '{}' with {}, this machine offers {}; plan again on this machine",
             graph.node_name(planned.node), planned.kernel, device.choose_kernel(signature).kernel);
    }
    step.is_kept = is_kept(node);
    step.is_completing = is_completing[static_cast<size_t>(planned.node.index)];
    step.is_on_host = plan.has_spaces && works_on_host(node);
    step.workspace = (step.is_on_host ? impl_->host_arena : impl_->arena).get() + planned.workspace_offset;
    for (size_t operand = 0; operand < node.inputs.size(); ++operand) {
      step.inputs.push_back(impl_->operand_address(node.inputs[operand], index));
      impl_->record(node.inputs[operand], index, operand, false);
    }
    for (size_t operand = 0; operand < node.outputs.size(); ++operand) {
      step.outputs.push_back(impl_->address(node.outputs[operand]));
      impl_->record(node.outputs[operand], index, operand, true);
    }
  }
  for (const StateUpdate& update : graph.updates()) {
    const GraphInput* input = graph.find_input(update.state);
    const auto state_index = static_cast<size_t>(input - graph.inputs().data());
    const Placement& placement = plan.placements[static_cast<size_t>(update.value.index)];
    const NodeId producer = graph.value(update.value).producer;
    if (placement.where == Placement::Where::arena || placement.where == Placement::Where::constant)
      impl_->copies.push_back({impl_->address(update.value), state_index, placement.bytes,
                               producer.valid() && is_completing[static_cast<size_t>(producer.index)]});
    else
      check(placement.where == Placement::Where::state && placement.offset == static_cast<int64_t>(state_index),
            "a state update lies in another input's memory");
  }
}

Executor::~Executor() = default;

void Executor::bind_state(State& state) {
  check(!impl_->is_pending, "states are bound to a step that was not finished");
  impl_->has_copies = false;
  for (size_t index = 0; index < impl_->graph.inputs().size(); ++index) {
    const GraphInput& input = impl_->graph.inputs()[index];
    if (input.kind == InputKind::parameter || input.kind == InputKind::state)
      impl_->bind(index, state.require(input.name, impl_->graph.type(input.value), impl_->memory));
  }
}

void Executor::bind_batch(const std::string& name, const void* data) {
  impl_->bind(impl_->input_index(name, false), const_cast<void*>(data));
}

bool Executor::has_batch(const std::string& name) const {
  const GraphInput* input = impl_->graph.find_input(name);
  return input != nullptr && input->kind == InputKind::batch;
}

bool Executor::has_scalar(const std::string& name) const {
  const GraphInput* input = impl_->graph.find_input(name);
  return input != nullptr && input->kind == InputKind::scalar;
}

void Executor::set_real(const std::string& name, double value) {
  const size_t index = impl_->input_index(name, true);
  const DType dtype = impl_->graph.type(impl_->graph.inputs()[index].value).dtype;
  if (dtype == DType::i64 && !(std::trunc(value) == value && std::fabs(value) < 0x1p63))
    fail(ErrorKind::usage, "graph '{}': scalar '{}' is i64 and cannot be {}; give a whole number", impl_->graph.name(),
         name, value);
  store_number(dtype, impl_->scalars[index], 0, value);
}

void Executor::set_integer(const std::string& name, int64_t value) {
  const size_t index = impl_->input_index(name, true);
  store_number(impl_->graph.type(impl_->graph.inputs()[index].value).dtype, impl_->scalars[index], 0, value);
}

void Executor::run(Profile* profile) {
  for (size_t index = 0; index < impl_->addresses.size(); ++index)
    if (impl_->addresses[index] == nullptr)
      fail(ErrorKind::internal, "input '{}' is not bound", impl_->graph.inputs()[index].name);
  if (profile != nullptr) profile->seconds.resize(impl_->steps.size());
  const bool has_arena = impl_->shared_arena == nullptr || impl_->shared_arena->take(this);
  const bool has_copies = std::exchange(impl_->has_copies, false) && has_arena;
  check(!impl_->is_pending || has_copies, "another executor ran in the arena of a step that was not finished");
  const bool has_left = std::exchange(impl_->is_pending, false);
  const bool was_complete = std::exchange(impl_->was_complete, impl_->is_complete());
  for (const size_t index : impl_->order) {
    const BoundStep& step = impl_->steps[index];
    const bool is_deferred = impl_->is_deferred(index);
    if (step.is_completing && !(is_deferred ? was_complete : impl_->was_complete)) continue;
    if (is_deferred ? has_left : !(step.is_kept && has_copies)) impl_->run_step(index, profile);
  }
  if (impl_->defers()) {
    for (size_t index = 0; index < impl_->scalars.size(); ++index)
      if (impl_->scalars[index] != nullptr) std::memcpy(impl_->latches[index], impl_->scalars[index], kScalarBytes);
    impl_->is_pending = true;
  }
  for (const CopyBack& copy : impl_->copies)
    if (impl_->was_complete || !copy.is_completing)
      impl_->context->copy(impl_->addresses[copy.input], copy.source, copy.bytes);
  impl_->context->wait();
  impl_->has_copies = true;
  if (profile != nullptr) ++profile->runs;
}

void Executor::finish(Profile* profile) {
  if (!std::exchange(impl_->is_pending, false)) return;
  if (profile != nullptr) profile->seconds.resize(impl_->steps.size());
  for (auto index = static_cast<size_t>(impl_->plan.deferred_from); index < impl_->steps.size(); ++index)
    if (impl_->was_complete || !impl_->steps[index].is_completing) impl_->run_step(index, profile);
  impl_->context->wait();
}

Tensor Executor::output(const std::string& name) const {
  const TensorType& type = impl_->graph.type(impl_->find_output(name).value);
  Tensor tensor(TensorType{type.dtype, type.shape, {}});
  copy_output(name, tensor.data());
  return tensor;
}

void Executor::copy_output(const std::string& name, void* to) const {
  const ValueId value = impl_->find_output(name).value;
  const TensorType& type = impl_->graph.type(value);
  copy_layout(type, impl_->address(value), {type.dtype, type.shape, {}}, to);
}

float Executor::scalar_output(const std::string& name) const {
  const GraphOutput* output = impl_->graph.find_output(name);
  check(output != nullptr, "scalar_output of an unknown output");
  float value;
  std::memcpy(&value, impl_->address(output->value), sizeof value);
  return value;
}

int64_t Executor::arena_bytes() const { return impl_->plan.arena_bytes; }

}  // namespace weft
