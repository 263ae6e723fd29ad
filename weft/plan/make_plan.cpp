#include "weft/plan/make_plan.h"

#include <algorithm>
#include <set>

#include "weft/graph/constant_node.h"
#include "weft/graph/kept.h"
#include "weft/graph/offloaded.h"
#include "weft/graph/space_copies.h"
#include "weft/plan/deferral.h"
#include "weft/plan/execution_order.h"
#include "weft/plan/memory/pack_intervals.h"
#include "weft/plan/spaces.h"
#include "weft/plan/storage.h"

namespace weft {

namespace {

PlannedNode plan_node(const Graph& graph, NodeId id, const Backend& backend) {
  const NodeSignature signature = signature_of(graph, id);
  PlannedNode planned;
  planned.node = id;
  if (signature.op->is_view) {
    planned.kernel = "view";
    return planned;
  }
  if (is_constant_tensor(graph.node(id))) {
    planned.kernel = "constant";  // its data lie where they are
    return planned;
  }
  if (is_store(graph.node(id)) || is_load(graph.node(id))) {
    planned.kernel = "file";
    (is_store(graph.node(id)) ? planned.bytes_read : planned.bytes_written) = signature.inputs[0].bytes();
    return planned;
  }
  KernelChoice choice = backend.choose_kernel(signature);
  planned.kernel = std::move(choice.kernel);
  planned.declined = std::move(choice.declined);
  planned.workspace_bytes = choice.workspace_bytes;
  if (signature.op->flops)
    planned.flops = signature.op->flops(signature.inputs, signature.outputs, signature.attributes);
  for (const TensorType& type : signature.inputs) planned.bytes_read += type.bytes();
  if (is_renewal(graph.node(id))) planned.bytes_read -= signature.inputs[0].bytes();  // only written over
  for (const TensorType& type : signature.outputs) planned.bytes_written += type.bytes();
  return planned;
}

/// The life of each storage in steps, in the next run too where deferred ones touch it; storages of graph inputs live
/// outside the arena.
std::vector<Interval> find_lives(const Graph& graph, const StorageMap& storage, const DeferredOrder& deferred) {
  const std::vector<NodeId>& order = deferred.order;
  std::vector<Interval> lives(storage.root.size(), Interval{.first = -1, .last = -1});
  for (size_t step = 0; step < order.size(); ++step) {
    const Node& node = graph.node(order[step]);
    const auto touch = [&](ValueId value) {
      Interval& life = lives[static_cast<size_t>(storage.storage(value))];
      const int before = deferred.before[step];
      if (life.first < 0) {
        life.first = static_cast<int>(step);
        life.again_first = std::max(before, 0);  // what is there before lives on into the next run
      }
      life.last = static_cast<int>(step);
      life.again_last = std::max(life.again_last, before);
    };
    for (const ValueId output : node.outputs) touch(output);
    for (const ValueId input : node.inputs) touch(input);
  }
  const int end = static_cast<int>(order.size()) - 1;
  const auto keep = [&](ValueId value) { lives[static_cast<size_t>(storage.storage(value))].last = end; };
  for (const GraphOutput& output : graph.outputs()) keep(output.value);
  for (const int32_t update : storage.copied_updates) keep(graph.updates()[static_cast<size_t>(update)].value);
  for (size_t index = 0; index < lives.size(); ++index) {
    lives[index].bytes = storage.bytes[index];
    if (!storage.is_kept[index]) continue;
    lives[index].first = 0;
    lives[index].last = end;
    lives[index].again_last = -1;
  }
  return lives;
}

Placement place_input(const Graph& graph, int32_t input, int64_t bytes) {
  switch (graph.inputs()[static_cast<size_t>(input)].kind) {
    case InputKind::batch:
      return {Placement::Where::batch, input, bytes};
    case InputKind::scalar:
      return {Placement::Where::scalar, input, bytes};
    default:
      return {Placement::Where::state, input, bytes};
  }
}

/// What an interval takes of the arena, its guard included.
int64_t block_bytes(const MemoryRules& rules, int64_t bytes) {
  if (bytes == 0) return 0;
  return (align_up(bytes) + rules.block_bytes - 1) / rules.block_bytes * rules.block_bytes + rules.guard_bytes;
}

/// Where in its blocks it lies.
int64_t offset_in_blocks(const MemoryRules& rules, int64_t bytes) {
  if (!rules.values_end_at_blocks || bytes == 0) return 0;
  return block_bytes(rules, bytes) - rules.guard_bytes - align_up(bytes);
}

Interval workspace_of(const std::vector<PlannedNode>& steps, size_t step, int64_t bytes) {
  return {.first = static_cast<int>(step),
          .last = static_cast<int>(step),
          .bytes = bytes,
          .again_first = std::max(steps[step].before, 0),
          .again_last = steps[step].before};
}

/// Places what nodes have copied to the host, and what works there; sets its offset in each of those lives and steps.
int64_t pack_host(const Graph& graph, const std::vector<bool>& on_host, const StorageMap& storage,
                  std::vector<Interval>& lives, std::vector<PlannedNode>& steps) {
  std::vector<Interval> packed;
  std::vector<int64_t*> offsets;
  for (size_t index = 0; index < lives.size(); ++index) {
    if (!on_host[index] || storage.is_given(index) || storage.in_file[index] || lives[index].first < 0) continue;
    packed.push_back(lives[index]);
    offsets.push_back(&lives[index].offset);
  }
  for (size_t step = 0; step < steps.size(); ++step) {
    if (!works_on_host(graph.node(steps[step].node)) || steps[step].workspace_bytes == 0) continue;
    packed.push_back(workspace_of(steps, step, steps[step].workspace_bytes));
    offsets.push_back(&steps[step].workspace_offset);
  }
  const int64_t bytes = pack_intervals(packed);
  for (size_t index = 0; index < offsets.size(); ++index) *offsets[index] = packed[index].offset;
  return bytes;
}

/// Whole blocks, so that what is written replaces whole pages of the system's cache.
int64_t file_bytes_of(int64_t bytes) { return (bytes + kFileBlockBytes - 1) / kFileBlockBytes * kFileBlockBytes; }

/// Places what lies in the file; sets its offset in each of those lives.
int64_t pack_file(const StorageMap& storage, std::vector<Interval>& lives) {
  std::vector<Interval> packed;
  std::vector<size_t> from;
  for (size_t index = 0; index < lives.size(); ++index) {
    if (!storage.in_file[index]) continue;
    packed.push_back({lives[index].first, lives[index].last, file_bytes_of(lives[index].bytes), 0});
    from.push_back(index);
  }
  if (packed.empty()) return 0;
  const int64_t bytes = pack_intervals(packed);
  for (size_t index = 0; index < from.size(); ++index) lives[from[index]].offset = packed[index].offset;
  return bytes;
}

/// Each of the graph's constants once, however many nodes hold it.
int64_t constant_bytes_of(const Graph& graph) {
  std::set<Hash128> contents;
  std::set<const void*> places;  // a view of another type has another hash
  int64_t sum = 0;
  for (const Node& node : graph.nodes()) {
    if (!is_constant_tensor(node)) continue;
    const Constant& data = constant_of(node);
    if (contents.insert(data->hash()).second && places.insert(data->tensor().data()).second)
      sum += align_up(data->type().bytes());
  }
  return sum;
}

}  // namespace

Plan make_plan(const Graph& graph, const Backend& backend, int threads) {
  Plan plan;
  plan.threads = threads;
  const StorageMap storage = map_storage(graph);
  const MemoryRules rules = backend.memory_rules();
  plan.has_spaces = rules.is_separate;
  const std::vector<bool> on_host =
      rules.is_separate ? find_host_storages(graph, storage) : std::vector<bool>(storage.root.size(), false);
  const DeferredOrder ordered = defer(graph, storage, schedule(graph, storage));
  for (size_t step = 0; step < ordered.order.size(); ++step) {
    plan.steps.push_back(plan_node(graph, ordered.order[step], backend));
    plan.steps.back().before = ordered.before[step];
    plan.deferred_from += ordered.before[step] < 0 ? 1 : 0;
  }

  // Arena storages and workspaces are packed together.
  std::vector<Interval> lives = find_lives(graph, storage, ordered);
  plan.file_bytes = pack_file(storage, lives);
  if (plan.has_spaces) plan.host_arena_bytes = pack_host(graph, on_host, storage, lives, plan.steps);
  std::vector<Interval> packed;
  std::vector<int> position(lives.size(), -1);
  for (size_t index = 0; index < lives.size(); ++index) {
    if (storage.is_given(index) || storage.in_file[index] || on_host[index] || lives[index].first < 0) continue;
    position[index] = static_cast<int>(packed.size());
    packed.push_back(lives[index]);
    packed.back().bytes = block_bytes(rules, lives[index].bytes);
    plan.blocks.push_back({.value = storage.root[index],
                           .bytes = align_up(packed.back().bytes),
                           .first_step = lives[index].first,
                           .last_step = lives[index].last,
                           .again_first = lives[index].again_first,
                           .again_last = lives[index].again_last});
  }
  const size_t first_workspace = packed.size();
  const auto device_workspace = [&](size_t step) {
    const bool is_there = plan.has_spaces && works_on_host(graph.node(plan.steps[step].node));
    return is_there ? 0 : plan.steps[step].workspace_bytes;
  };
  for (size_t step = 0; step < plan.steps.size(); ++step)
    packed.push_back(workspace_of(plan.steps, step, block_bytes(rules, device_workspace(step))));
  plan.arena_bytes = pack_intervals(packed);
  for (size_t block = 0; block < plan.blocks.size(); ++block) plan.blocks[block].offset = packed[block].offset;
  const std::vector<int64_t> live = live_bytes(packed, static_cast<int>(plan.steps.size()));
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    if (device_workspace(step) == plan.steps[step].workspace_bytes)
      plan.steps[step].workspace_offset =
          packed[first_workspace + step].offset + offset_in_blocks(rules, plan.steps[step].workspace_bytes);
    plan.steps[step].live_bytes = live[step];
    if (live[step] > plan.lower_bound_bytes) {
      plan.lower_bound_bytes = live[step];
      plan.peak_step = static_cast<int>(step);
    }
  }

  plan.placements.resize(graph.values().size());
  for (size_t index = 0; index < graph.values().size(); ++index) {
    const auto slot = static_cast<size_t>(storage.of_value[index]);
    const int64_t bytes = graph.values()[index].type.bytes();
    if (storage.input[slot] >= 0)
      plan.placements[index] = place_input(graph, storage.input[slot], bytes);
    else if (storage.constant[slot] >= 0)
      plan.placements[index] = {Placement::Where::constant, storage.constant[slot], bytes};
    else if (storage.in_file[slot])
      plan.placements[index] = {Placement::Where::file, lives[slot].offset, bytes};
    else if (on_host[slot])
      plan.placements[index] = {Placement::Where::arena, lives[slot].offset, bytes};
    else if (position[slot] >= 0)
      plan.placements[index] = {
          Placement::Where::arena,
          packed[static_cast<size_t>(position[slot])].offset + offset_in_blocks(rules, lives[slot].bytes), bytes};
    if (on_host[slot]) plan.placements[index].space = Space::host;
  }
  plan.constant_bytes = constant_bytes_of(graph);
  for (const GraphInput& input : graph.inputs()) {
    const int64_t bytes = align_up(graph.type(input.value).bytes());
    if (input.kind == InputKind::batch) plan.batch_bytes += bytes;
    if (input.kind == InputKind::parameter || input.kind == InputKind::state) plan.state_bytes += bytes;
  }
  return plan;
}

}  // namespace weft
