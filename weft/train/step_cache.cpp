#include "weft/train/step_cache.h"

#include <algorithm>

namespace weft::train {

const CompiledStep& StepCache::compiled(int64_t batch) {
  Entry& entry = entries_[batch];
  if (!entry.compiled) entry.compiled = std::make_unique<CompiledStep>(compile(build_(batch), backend_, options_));
  return *entry.compiled;
}

void StepCache::limit_arena(int64_t bytes) {
  options_.arena_limit_bytes = bytes;
  std::erase_if(entries_, [bytes](const auto& item) {
    const Entry& entry = item.second;
    return entry.compiled && !entry.executor && entry.compiled->plan.arena_bytes > bytes;
  });
}

Executor& StepCache::executor(int64_t batch) {
  const CompiledStep& step = compiled(batch);
  Entry& entry = entries_[batch];
  if (!entry.executor) {
    arena_->reserve(arena_bytes());
    entry.executor = std::make_unique<Executor>(step.graph, step.plan, backend_, arena_.get());
  }
  return *entry.executor;
}

int64_t StepCache::arena_bytes() const {
  int64_t bytes = 0;
  for (const auto& [batch, entry] : entries_)
    if (entry.compiled) bytes = std::max(bytes, entry.compiled->plan.arena_bytes);
  return bytes;
}

}  // namespace weft::train
