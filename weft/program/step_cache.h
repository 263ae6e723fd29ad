// One step compiled once per shape, all over the same State: each batch or image size has a plan of its own. The
// plans run in turn in one arena, which caches of several steps may share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "weft/compile/compile.h"
#include "weft/runtime/executor.h"
#include "weft/spec/step_shape.h"

namespace weft::program {

class StepCache {
 public:
  using Build = std::function<Graph(const spec::StepShape& shape)>;
  /// Keeps a reference to the device. Without an `arena`, which lies in the device's memory, the cache has
  /// its own.
  StepCache(Build build, const Device& device, CompileOptions options, std::shared_ptr<Arena> arena = nullptr)
      : build_(std::move(build)),
        device_(device),
        options_(std::move(options)),
        arena_(arena ? std::move(arena) : std::make_shared<Arena>(device.memory())) {}

  /// Compiled at the first call for a shape.
  const CompiledStep& compiled(const spec::StepShape& shape);
  /// Recompiles plans that exceed the limit and have no executor yet. Later compilations keep to the limit.
  void limit_arena(int64_t bytes);
  /// Makes the executor at the first call for a shape. The first executor allocates the arena for all shapes compiled
  /// so far, in all caches that share it; a larger plan that comes later gets memory of its own. Where plans keep
  /// values in a file, the arena must have one.
  Executor& executor(const spec::StepShape& shape);
  /// The largest arena of the shapes compiled so far.
  int64_t arena_bytes() const;
  /// The same of their files.
  int64_t file_bytes() const;
  /// Of the shapes compiled so far.
  std::vector<const Graph*> graphs() const;
  /// How many shapes have an executor.
  int64_t executors() const;

 private:
  struct Entry {
    std::unique_ptr<CompiledStep> compiled;  // the executor keeps references into it
    std::unique_ptr<Executor> executor;
  };
  Build build_;
  const Device& device_;
  CompileOptions options_;
  std::shared_ptr<Arena> arena_;
  std::map<spec::StepShape, Entry> entries_;
};

}  // namespace weft::program
