#include "weft/program/step_cache.h"

#include <algorithm>

namespace weft::program {

const CompiledStep& StepCache::compiled(const spec::StepShape& shape) {
  Entry& entry = entries_[shape];
  if (!entry.compiled) entry.compiled = std::make_unique<CompiledStep>(compile(build_(shape), device_, options_));
  return *entry.compiled;
}

void StepCache::limit_arena(int64_t bytes) {
  options_.arena_limit_bytes = bytes;
  std::erase_if(entries_, [bytes](const auto& item) {
    const Entry& entry = item.second;
    return entry.compiled && !entry.executor && entry.compiled->plan.arena_bytes > bytes;
  });
}

Executor& StepCache::executor(const spec::StepShape& shape) {
  const CompiledStep& step = compiled(shape);
  Entry& entry = entries_[shape];
  if (!entry.executor) {
    arena_->reserve(arena_bytes());
    if (arena_->file() != nullptr) arena_->file()->reserve(file_bytes());
    entry.executor = std::make_unique<Executor>(step.graph, step.plan, device_, arena_.get());
  }
  return *entry.executor;
}

int64_t StepCache::arena_bytes() const {
  int64_t bytes = 0;
  for (const auto& [shape, entry] : entries_)
    if (entry.compiled) bytes = std::max(bytes, entry.compiled->plan.arena_bytes);
  return bytes;
}

int64_t StepCache::file_bytes() const {
  int64_t bytes = 0;
  for (const auto& [shape, entry] : entries_)
    if (entry.compiled) bytes = std::max(bytes, entry.compiled->plan.file_bytes);
  return bytes;
}

std::vector<const Graph*> StepCache::graphs() const {
  std::vector<const Graph*> graphs;
  for (const auto& [shape, entry] : entries_)
    if (entry.compiled) graphs.push_back(&entry.compiled->graph);
  return graphs;
}

int64_t StepCache::executors() const {
  return std::count_if(entries_.begin(), entries_.end(),
                       [](const auto& item) { return item.second.executor != nullptr; });
}

}  // namespace weft::program
