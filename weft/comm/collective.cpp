#include "weft/comm/collective.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/parallel.h"
#include "weft/base/rng.h"
#include "weft/comm/patience.h"

namespace weft::comm {

namespace {

constexpr int64_t kLittleBytes = 32 << 10;  // below, one rank sums faster than several agree on it
constexpr int64_t kBytesPerThread = 256 << 10;

uint64_t hash_of(const CollectiveSpec& spec) {
  uint64_t hash = mix(hash_name(spec.name), static_cast<uint64_t>(spec.dtype));
  hash = mix(hash, static_cast<uint64_t>(spec.reduction));
  hash = mix(hash, static_cast<uint64_t>(spec.kind));
  hash = mix(hash, static_cast<uint64_t>(spec.root));
  for (const int64_t count : spec.elements) hash = mix(hash, static_cast<uint64_t>(count));
  return hash;
}

}  // namespace

Collective::Collective(HostGroup& host, Communicator& communicator, CollectiveLayout layout, int32_t index)
    : host_(host),
      communicator_(communicator),
      layout_(std::move(layout)),
      index_(index),
      factor_(spec().reduction == Reduction::mean ? 1.0f / static_cast<float>(communicator.size()) : 1.0f),
      last_one_sums_(host.size() == communicator.size() &&
                     byte_size(spec().dtype, layout_.map().size()) <= kLittleBytes),
      writes_staged_(last_one_sums_ || spec().kind != CollectiveKind::all_reduce),
      tensors_(spec().elements.size()),
      is_staged_(spec().elements.size()),
      operands_(spec().elements.size() * static_cast<size_t>(host.size())),
      sources_(operands_.size()) {
  if (is_alone()) return;
  staging_offset_ = align_up(static_cast<int64_t>(sizeof(Record) + spec().elements.size() * sizeof(Location)));
  // Pages that are never touched take no memory.
  memory_ = communicator.share(staging_offset_ + byte_size(spec().dtype, layout_.map().size()));
  record(host.self()).spec_hash = hash_of(spec());
}

void Collective::announce(std::span<void* const> tensors) {
  std::copy(tensors.begin(), tensors.end(), tensors_.begin());
  ++run_;
  announced_at_ = std::chrono::steady_clock::now();
  delivered_ = 0;
  is_under_way_ = true;
  has_work_ = host_.self() < layout_.lanes();
  if (is_alone()) return;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const int64_t bytes = byte_size(spec().dtype, layout_.elements()[t]);
    const Location location = bytes == 0 ? Location{} : host_.locate(tensors_[t], bytes);
    is_staged_[t] = location.region < 0 ? 1 : 0;
    locations(host_.self())[t] = location;
  }
  copy_in();
  start_number_ = host_.note_start(index_);
  record(host_.self()).announced.store(run_, std::memory_order_release);
  if (last_one_sums_) {
    const uint32_t arrivals = record(0).arrivals.fetch_add(1, std::memory_order_acq_rel) + 1;
    has_work_ = arrivals == run_ * static_cast<uint32_t>(host_.size());
  }
  // Who comes last finds all others, and sums before they need to know.
  host_.ring_all();
}

void Collective::resolve() {
  const auto ranks = static_cast<size_t>(host_.size());
  for (int local = 0; local < host_.size(); ++local) {
    const bool is_own = local == host_.self();
    if (!is_own && record(local).spec_hash != record(host_.self()).spec_hash)
      fail(ErrorKind::communication,
           "[{}] '{}': {} prepared another collective in its place: all ranks must run the same plan",
           name_of(spec().kind), spec().name, name_of_rank(communicator_, host_.rank_of(local)));
    for (size_t t = 0; t < tensors_.size(); ++t) {
      std::byte* data = nullptr;
      if (is_alone() || (is_own && !writes_staged_)) {
        data = static_cast<std::byte*>(tensors_[t]);
      } else if (const Location& location = locations(local)[t]; location.region < 0) {
        data = staging(local, t);
      } else {
        data = host_.resolve(local, location);
        check(data != nullptr, "memory of operands was given back while a peer reduces it");
      }
      operands_[t * ranks + static_cast<size_t>(local)] = data;
      sources_[t * ranks + static_cast<size_t>(local)] = data;
    }
  }
}

void Collective::set_parts(std::vector<Part> parts, int64_t lane_elements) {
  parts_ = std::move(parts);
  if (lane_elements > 0) lane_buffer_ = allocate_aligned(lane_elements * static_cast<int64_t>(sizeof(float)));
}

bool Collective::work(int threads, MessageThread* messages) {
  if (!has_work_) return false;
  if (!is_alone())
    for (int local = 0; local < host_.size(); ++local)
      if (record(local).announced.load(std::memory_order_acquire) != run_) return false;
  has_work_ = false;
  if (communicator_.size() == 1) return true;
  if (last_one_sums_) {
    resolve();
    move_in_host(
        0, layout_.gather() != nullptr ? layout_.gather()->elements_of(layout_.host_index()) : layout_.map().size());
    for (int local = 0; local < layout_.lanes(); ++local) finish_lane(local);
    host_.ring_all();
    return true;
  }
  const auto [begin, end] = layout_.share();
  resolve();
  if (!parts_.empty()) {
    for (Part& part : parts_) {
      if (part.tensor >= 0) {
        part.job->buffer = static_cast<float*>(tensors_[static_cast<size_t>(part.tensor)]) + part.first;
      } else {
        fill_lane(part);
        part.job->buffer = lane(part);
      }
    }
    // What is not summed up; other hosts' parts come later.
    if (!has_sums(spec().kind)) move_in_host(begin, end);
    for (Part& part : parts_) messages->submit(*part.job);
    return true;
  }
  const int64_t units = (end - begin) / ElementMap::kUnit;
  parallel_for(threads, units, kBytesPerThread / byte_size(spec().dtype, ElementMap::kUnit),
               [&, begin = begin](int64_t first, int64_t last) {
                 move_in_host(begin + first * ElementMap::kUnit, begin + last * ElementMap::kUnit);
               });
  finish_lane(host_.self());
  host_.ring_all();
  return true;
}

void Collective::finish_lane(int local) {
  (is_alone() ? lane_finished_ : record(local).finished).store(run_, std::memory_order_release);
}

bool Collective::collect() {
  if (has_work_) return false;
  if (communicator_.size() > 1 && is_alone()) {
    if (lane_finished_.load(std::memory_order_acquire) != run_) return false;
  } else if (!is_alone()) {
    for (int local = 0; local < layout_.lanes(); ++local)
      if (record(local).finished.load(std::memory_order_acquire) != run_) return false;
    copy_out();
  }
  if (parts_.empty()) note_time();
  is_under_way_ = false;
  return true;
}

void Collective::deliver(const Part& part) {
  empty_lane(part);
  if (++delivered_ < parts_.size()) return;
  note_time();
  finish_lane(host_.self());
}

int Collective::awaited_rank() const {
  if (is_alone()) return -1;
  for (int local = 0; local < host_.size(); ++local)
    if (record(local).announced.load(std::memory_order_acquire) != run_) return host_.rank_of(local);
  for (int local = 0; local < layout_.lanes(); ++local)
    if (local != host_.self() && record(local).finished.load(std::memory_order_acquire) != run_)
      return host_.rank_of(local);
  return -1;
}

}  // namespace weft::comm
