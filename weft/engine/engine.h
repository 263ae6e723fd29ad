// Runs a deployed model: plans for as many sizes of the batch as are asked for, over one set of weights.
//
// Weights are folded, cast and laid out as kernels want them when a plan is made, never in a run. What several plans
// want alike exists once. A stream is an arena with a plan's kernels in it: one thread at a time runs it, and several
// streams run at the same time over the same weights. How many threads work on one run is the device's affair: all
// cores for the least latency, one for the most throughput, with a stream for each core (engine/stream_pool.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/compile/compile.h"
#include "weft/device/arena.h"
#include "weft/engine/deployed_model.h"
#include "weft/engine/shared_constants.h"
#include "weft/graph/symbolic_graph.h"
#include "weft/runtime/executor.h"

namespace weft::engine {

struct EngineOptions {
  /// Of convolutions and matrix products. nullopt: as the model says, or f32 where the device computes that no faster.
  std::optional<DType> precision = {};
  CompileOptions compile = {};  // its threads and precision are the engine's
  std::function<void(int64_t batch, const CompiledStep& step)> on_plan = {};  // told of each new plan; may be empty
};

class Engine {
 public:
  /// Keeps references to registry and device. Error(data) where the model's graphs are none, or not for inference;
  /// Error(usage) for a precision that the device does not compute faster than f32.
  Engine(DeployedModel model, const OpRegistry& registry, const Device& device, EngineOptions options = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const DeployedModel& model() const { return model_; }
  const Device& device() const { return device_; }
  /// The sizes that the model is for; empty: any.
  const std::vector<int64_t>& batches() const { return batches_; }
  /// Of an input or output with a batch of this size. Error(usage) for a batch that the model is not for, or with which
  /// no memory holds it.
  TensorType input_type(size_t index, int64_t batch) const;
  TensorType output_type(size_t index, int64_t batch) const;

  /// Made at the first call for a batch. Thread-safe. Stays as long as the engine. Error(usage) for a batch that the
  /// model is not for.
  const CompiledStep& plan(int64_t batch);
  /// Of all plans so far, each content once.
  int64_t constant_bytes() const;
  /// Of these what lies in the mapped file.
  int64_t mapped_constant_bytes() const;

  /// For streams: an executor of that plan in the arena, or in memory of its own where that is too small. Thread-safe.
  std::unique_ptr<Executor> make_executor(int64_t batch, Arena& arena);

 private:
  struct Source {
    int64_t batch;  // 0: any
    SymbolicGraph graph;
    SymbolBindings bindings(int64_t of_batch) const {
      return batch == 0 ? SymbolBindings{{kBatchSymbol, of_batch}} : SymbolBindings{};
    }
  };
  void read_graphs(const OpRegistry& registry);
  /// Error(usage) where there is none for the batch.
  const Source& source_for(int64_t batch) const;
  void check_pictures(const SymbolicGraph& graph, int64_t batch) const;
  TensorType type_of(const Port& port, const Source& source, ValueId value, int64_t batch) const;
  CompiledStep compile_for(int64_t batch);
  std::string name() const;
  /// By address: what is shared counts once.
  std::map<const std::byte*, int64_t> constants_by_address() const;

  const DeployedModel model_;
  const Device& device_;
  EngineOptions options_;
  std::vector<Source> sources_;
  std::vector<int64_t> batches_;
  mutable std::mutex mutex_;
  SharedConstants constants_;
  std::map<int64_t, CompiledStep> plans_;
};

class Stream {
 public:
  /// Keeps a reference to the engine.
  explicit Stream(Engine& engine) : engine_(engine), inputs_(engine.model().inputs.size(), nullptr) {}

  Engine& engine() const { return engine_; }
  /// Row-major data of input_type(); the caller keeps them until the runs that read them are over.
  void set_input(size_t index, const void* data) { inputs_.at(index) = data; }
  const void* input(size_t index) const { return inputs_.at(index); }
  /// With all inputs set. The first run with a batch makes its plan, the others allocate nothing. Adds the times of
  /// nodes, in the order of Engine::plan(), to a profile.
  void run(int64_t batch, Profile* profile = nullptr);
  /// Of the last run, row-major, output_type() of its batch; without allocating. Error(usage) before the first run.
  void read_output(size_t index, std::span<std::byte> to) const;
  Tensor output(size_t index) const;
  /// Planned: of results, for the plans that it has run.
  int64_t arena_bytes() const { return arena_ ? arena_->bytes() : 0; }

 private:
  Executor& executor_for(int64_t batch);

  Engine& engine_;
  std::vector<const void*> inputs_;
  std::unique_ptr<Arena> arena_;
  std::map<int64_t, std::unique_ptr<Executor>> executors_;  // by batch
  int64_t batch_ = 0;                                       // of the last run
};

}  // namespace weft::engine
