// A plan: the order, the kernels, the memory and the prediction for one graph on one machine. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/device/backend.h"

namespace weft {

/// Where a value lives during the step.
struct Placement {
  enum class Where {
    arena,   // offset in the arena
    state,   // the buffer of a parameter or state: index into graph.inputs()
    batch,   // the caller's buffer: index into graph.inputs()
    scalar,  // the executor's scalar slot: index into graph.inputs()
    file,    // offset in the file of what is kept outside memory
    unused,
    constant,  // the data of a constant node: its index in graph.nodes()
  };
  Where where = Where::unused;
  int64_t offset = 0;  // bytes in the arena (of its space) or the file, or the input's or the constant's index
  int64_t bytes = 0;
  Space space = Space::device;  // where this is not the host's memory too
};

/// A piece of the arena for the values that share it: views, in-place results.
struct ArenaBlock {
  ValueId value;  // the first of them
  int64_t offset = 0;
  int64_t bytes = 0;                     // in whole blocks of the device's memory
  int first_step = 0, last_step = 0;     // indices into Plan::steps, both included
  int again_first = 0, again_last = -1;  // the same in the next run, where deferred steps touch it
};

inline bool lives_at(const ArenaBlock& block, int step) {
  return (block.first_step <= step && step <= block.last_step) ||
         (block.again_first <= step && step <= block.again_last);
}

struct PlannedNode {
  NodeId node;
  std::string kernel;
  std::vector<std::string> declined;  // why better candidates could not serve
  int64_t workspace_offset = 0;
  int64_t workspace_bytes = 0;
  int64_t flops = 0;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
  int64_t live_bytes = 0;  // arena bytes alive while this node runs, its workspace included
  /// Deferred where it is no longer negative: this step runs in the next run, before the step of that index (of
  /// deferred_from: after all that are not deferred), or when the executor is told to finish.
  int before = -1;
};

struct Plan {
  std::vector<PlannedNode> steps;     // in order of execution; those that are deferred last, by `before`
  std::vector<Placement> placements;  // per value of the graph
  std::vector<ArenaBlock> blocks;     // what the arena holds besides workspaces
  int64_t arena_bytes = 0;            // what the executor allocates
  int64_t host_arena_bytes = 0;   // the same in the host's memory, for what is copied there from a device with its own
  int64_t lower_bound_bytes = 0;  // the largest live_bytes: no placement can need less
  int64_t arena_limit_bytes = 0;  // what was asked for, 0: nothing; the arena is larger where nothing meets it
  int64_t state_bytes = 0;
  int64_t batch_bytes = 0;
  int64_t constant_bytes = 0;  // of constant nodes: read-only, shared by all that runs the graph, not in the arena
  int64_t file_bytes = 0;      // on disk, not in memory: what lies between stores and loads
  int peak_step = 0;           // index into steps where live_bytes is largest
  int deferred_from = 0;       // index into steps of the first that is deferred; their number where none is
  int threads = 1;
  bool has_spaces = false;  // the device has memory of its own
  /// Of memory: arena + state + batch + constants.
  int64_t total_bytes() const { return arena_bytes + state_bytes + batch_bytes + constant_bytes; }
};

}  // namespace weft
