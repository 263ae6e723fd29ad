#include "weft/train/distributed/rank_runtime.h"

#include <utility>

#include "weft/runtime/collective_kernels.h"

namespace weft::train {

RankRuntime::RankRuntime(comm::Communicator* ranks, int threads) {
  if (ranks == nullptr) return;
  comm::CollectivesOptions options;
  options.threads = threads;
  collectives_ = std::make_shared<comm::Collectives>(*ranks, options);
}

KernelTable RankRuntime::kernels(KernelTable table) const {
  if (collectives_ != nullptr) add_collective_kernels(table, collectives_);
  return table;
}

std::shared_ptr<Arena> RankRuntime::make_arena() const {
  if (collectives_ == nullptr) return std::make_shared<Arena>();
  return std::make_shared<Arena>([collectives = collectives_](int64_t bytes) { return collectives->allocate(bytes); });
}

passes::Ranks RankRuntime::costs() const {
  if (collectives_ == nullptr) return {};
  return {.count = collectives_->size()};
}

}  // namespace weft::train
