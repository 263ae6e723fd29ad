#include "weft/train/step_cache.h"

namespace weft::train {

const CompiledStep& StepCache::compiled(int64_t batch) {
  Entry& entry = entries_[batch];
  if (!entry.compiled) entry.compiled = std::make_unique<CompiledStep>(compile(build_(batch), backend_, options_));
  return *entry.compiled;
}

Executor& StepCache::executor(int64_t batch) {
  const CompiledStep& step = compiled(batch);
  Entry& entry = entries_[batch];
  if (!entry.executor) entry.executor = std::make_unique<Executor>(step.graph, step.plan, backend_);
  return *entry.executor;
}

int64_t StepCache::arena_bytes() const {
  int64_t bytes = 0;
  for (const auto& [batch, entry] : entries_)
    if (entry.compiled) bytes += entry.compiled->plan.arena_bytes;
  return bytes;
}

}  // namespace weft::train
