// For now over messages alone: the operands go up a binomial tree to rank 0, which adds neighbours first, and the
// result comes down.
#include "weft/comm/collectives.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "weft/base/error.h"
#include "weft/comm/patience.h"
#include "weft/comm/tags.h"

namespace weft::comm {

namespace {

struct Prepared {
  ReductionSpec spec;
  std::vector<void*> tensors;  // of the run under way
  bool is_under_way = false;
  std::vector<float> sum, theirs;  // all tensors, one after the other
};

void widen(const Prepared& prepared, std::vector<float>& to) {
  size_t at = 0;
  for (size_t t = 0; t < prepared.tensors.size(); ++t)
    for (int64_t i = 0; i < prepared.spec.elements[t]; ++i)
      to[at++] = prepared.spec.dtype == DType::bf16 ? bf16_to_f32(static_cast<const uint16_t*>(prepared.tensors[t])[i])
                                                    : static_cast<const float*>(prepared.tensors[t])[i];
}

void narrow(const Prepared& prepared, const std::vector<float>& from, float factor) {
  size_t at = 0;
  for (size_t t = 0; t < prepared.tensors.size(); ++t)
    for (int64_t i = 0; i < prepared.spec.elements[t]; ++i) {
      const float value = from[at++] * factor;
      if (prepared.spec.dtype == DType::bf16)
        static_cast<uint16_t*>(prepared.tensors[t])[i] = f32_to_bf16(value);
      else
        static_cast<float*>(prepared.tensors[t])[i] = value;
    }
}

}  // namespace

struct Collectives::Impl {
  Communicator& communicator;
  CollectivesOptions options;
  std::vector<std::unique_ptr<Prepared>> prepared;
  std::string position;

  Prepared& at(CollectiveId id) { return *prepared[static_cast<size_t>(id.index)]; }

  void run(int32_t index, Prepared& collective) {
    const int size = communicator.size(), rank = communicator.rank();
    const int tag = kFirstCollectiveTag + index % kCollectiveTags;
    const WaitLimits limits{options.silence_seconds, options.wait_seconds};
    const Purpose purpose{"all_reduce", collective.spec.name, position};
    const auto send = [&](int peer) {
      await(communicator, communicator.send(peer, tag, std::as_bytes(std::span(collective.sum))), peer, limits,
            purpose);
    };
    const auto receive = [&](int peer, std::vector<float>& to) {
      await(communicator, communicator.receive(peer, tag, std::as_writable_bytes(std::span(to))), peer, limits,
            purpose);
    };
    widen(collective, collective.sum);
    int mask = 1;
    for (; mask < size && (rank & mask) == 0; mask <<= 1) {
      if (rank + mask >= size) continue;
      receive(rank + mask, collective.theirs);
      for (size_t i = 0; i < collective.sum.size(); ++i) collective.sum[i] += collective.theirs[i];
    }
    if (rank != 0) {
      send(rank - mask);
      receive(rank - mask, collective.sum);
    }
    for (mask >>= 1; mask > 0; mask >>= 1)
      if (rank + mask < size) send(rank + mask);
    narrow(collective, collective.sum,
           collective.spec.reduction == Reduction::mean ? 1.0f / static_cast<float>(size) : 1.0f);
  }
};

Collectives::Collectives(Communicator& communicator, const CollectivesOptions& options)
    : impl_(new Impl{communicator, options, {}, {}}) {}
Collectives::~Collectives() = default;

int Collectives::rank() const { return impl_->communicator.rank(); }
int Collectives::size() const { return impl_->communicator.size(); }

std::shared_ptr<std::byte> Collectives::allocate(int64_t bytes) {
  const std::shared_ptr<SharedMemory> memory = impl_->communicator.share(bytes);
  const Member& me = impl_->communicator.members()[static_cast<size_t>(rank())];
  return {memory, memory->part(me.local_rank)};
}

CollectiveId Collectives::prepare(const ReductionSpec& spec) {
  check(spec.dtype == DType::f32 || spec.dtype == DType::bf16, "only f32 and bf16 are reduced");
  auto& all = impl_->prepared;
  const auto known = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one->spec == spec; });
  if (known != all.end()) return {static_cast<int32_t>(known - all.begin())};
  auto prepared = std::make_unique<Prepared>();
  prepared->spec = spec;
  int64_t elements = 0;
  for (const int64_t count : spec.elements) elements += count;
  prepared->sum.resize(static_cast<size_t>(elements));
  prepared->theirs.resize(static_cast<size_t>(elements));
  prepared->tensors.resize(spec.elements.size());
  all.push_back(std::move(prepared));
  return {static_cast<int32_t>(all.size()) - 1};
}

void Collectives::start(CollectiveId id, std::span<void* const> tensors) {
  Prepared& collective = impl_->at(id);
  check(!collective.is_under_way, "a collective is started anew before it was awaited");
  check(tensors.size() == collective.tensors.size(), "a collective is started with another number of tensors");
  std::copy(tensors.begin(), tensors.end(), collective.tensors.begin());
  collective.is_under_way = true;
}

void Collectives::wait(CollectiveId id) {
  Prepared& collective = impl_->at(id);
  check(collective.is_under_way, "a collective is awaited that was not started");
  impl_->run(id.index, collective);
  collective.is_under_way = false;
}

void Collectives::set_position(const std::string& position) { impl_->position = position; }

}  // namespace weft::comm
