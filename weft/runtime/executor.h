// Runs a plan: allocates its arena once, binds kernels to addresses, then executes steps without allocating.
// Knows nothing of training.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/device/arena.h"
#include "weft/device/device.h"
#include "weft/device/state.h"
#include "weft/plan/plan.h"

namespace weft {

/// Time per planned step, summed over runs.
struct Profile {
  std::vector<double> seconds;  // by index into plan.steps
  int64_t runs = 0;
};

class Executor {
 public:
  /// Keeps references to graph and plan: they must outlive it. In `arena`, where it is given and large enough: what it
  /// computes is then lost when another executor in that arena runs. Else in memory of its own. A plan that keeps
  /// values in a file wants an arena with one.
  Executor(const Graph& graph, const Plan& plan, const Device& device, Arena* arena = nullptr);
  ~Executor();

  /// Points the step at the state's buffers, converting layouts where they differ. Call again after another executor
  /// has run on the same state, or where its numbers were changed otherwise. Error(usage) where the graph wants a state
  /// that is absent.
  void bind_state(State& state);
  /// The caller's plain tensor data for a batch input; stays bound until changed. Error(usage) for an unknown name.
  void bind_batch(const std::string& name, const void* data);
  bool has_batch(const std::string& name) const;
  /// Learning rate, step number, seed; stored in the input's dtype, f32 or i64. A whole number reaches an i64 exactly;
  /// Error(usage) for a real that is none, or that no i64 holds.
  void set_scalar(const std::string& name, std::floating_point auto value) {
    set_real(name, static_cast<double>(value));
  }
  void set_scalar(const std::string& name, std::integral auto value) { set_integer(name, static_cast<int64_t>(value)); }
  bool has_scalar(const std::string& name) const;

  /// One step. All batch inputs must be bound. `profile` may be null. Error(io) where the file of the plan fails. What
  /// the plan defers runs in the next run, with the scalars of this one, or in finish().
  void run(Profile* profile = nullptr);
  /// Runs what the last run has left. Before the states are read or bound, or another executor runs in the arena.
  void finish(Profile* profile = nullptr);

  /// A graph output after run(), as a plain copy.
  Tensor output(const std::string& name) const;
  /// The same to memory of the caller's, which takes the row-major type; without allocating.
  void copy_output(const std::string& name, void* to) const;
  /// A one-element f32 output, without allocating.
  float scalar_output(const std::string& name) const;

  int64_t arena_bytes() const;

 private:
  void set_real(const std::string& name, double value);
  void set_integer(const std::string& name, int64_t value);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
