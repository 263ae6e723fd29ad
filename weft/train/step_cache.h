// One step compiled per batch size, all over the same State: a smaller last batch gets a plan of its own.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "weft/compile/compile.h"
#include "weft/runtime/executor.h"

namespace weft::train {

class StepCache {
 public:
  using Build = std::function<Graph(int64_t batch)>;
  /// Keeps a reference to the backend.
  StepCache(Build build, const CpuBackend& backend, CompileOptions options)
      : build_(std::move(build)), backend_(backend), options_(std::move(options)) {}

  /// Compiled at the first call for a batch size.
  const CompiledStep& compiled(int64_t batch);
  /// Allocated at the first call for a batch size.
  Executor& executor(int64_t batch);
  /// Of all batch sizes compiled so far: what their executors take together.
  int64_t arena_bytes() const;

 private:
  struct Entry {
    std::unique_ptr<CompiledStep> compiled;  // the executor keeps references into it
    std::unique_ptr<Executor> executor;
  };
  Build build_;
  const CpuBackend& backend_;
  CompileOptions options_;
  std::map<int64_t, Entry> entries_;
};

}  // namespace weft::train
