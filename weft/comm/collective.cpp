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

std::vector<int64_t> whole_elements(const CollectiveSpec& spec, int ranks) {
  std::vector<int64_t> elements = spec.elements;
  if (has_parts(spec.kind))
    for (int64_t& count : elements) count *= ranks;
  return elements;
}

std::pair<int64_t, int64_t> share_of(int local, int lanes, int host, const ElementMap& map, const GatherMap* gather) {
  if (local >= lanes) return {0, 0};
  return gather != nullptr ? gather->share(host, local, lanes) : map.share(local, lanes);
}

/// Local rank of the root where it is on this host, else -1.
int local_rank_of_root(const CollectiveSpec& spec, const Communicator& communicator) {
  if (!has_root(spec.kind)) return -1;
  const Member &root = communicator.members()[static_cast<size_t>(spec.root)],
               &me = communicator.members()[static_cast<size_t>(communicator.rank())];
  return root.host_index == me.host_index ? root.local_rank : -1;
}

}  // namespace

Collective::Collective(HostGroup& host, Communicator& communicator, const CollectiveSpec& spec, int32_t index,
                       int lanes)
    : host_(host),
      communicator_(communicator),
      spec_(spec),
      elements_(whole_elements(spec, communicator.size())),
      map_(elements_),
      gather_(has_parts(spec.kind) ? std::make_unique<GatherMap>(spec.elements, communicator.members(), spec.dtype)
                                   : nullptr),
      lane_begins_(gather_ != nullptr && host.self() < lanes ? gather_->begins_in_lane(host.self(), lanes)
                                                             : std::vector<int64_t>{}),
      index_(index),
      lanes_(lanes),
      factor_(spec.reduction == Reduction::mean ? 1.0f / static_cast<float>(communicator.size()) : 1.0f),
      share_(share_of(host.self(), lanes, host_index(), map_, gather_.get())),
      last_one_sums_(host.size() == communicator.size() && byte_size(spec.dtype, map_.size()) <= kLittleBytes),
      writes_staged_(last_one_sums_ || spec.kind != CollectiveKind::all_reduce),
      root_local_(local_rank_of_root(spec, communicator)),
      tensors_(spec.elements.size()),
      is_staged_(spec.elements.size()),
      operands_(spec.elements.size() * static_cast<size_t>(host.size())),
      sources_(operands_.size()) {
  if (is_alone()) return;
  staging_offset_ = align_up(static_cast<int64_t>(sizeof(Record) + spec.elements.size() * sizeof(Location)));
  // Pages that are never touched take no memory.
  memory_ = communicator.share(staging_offset_ + byte_size(spec.dtype, map_.size()));
  record(host.self()).spec_hash = hash_of(spec);
}

void Collective::announce(std::span<void* const> tensors) {
  std::copy(tensors.begin(), tensors.end(), tensors_.begin());
  ++run_;
  announced_at_ = std::chrono::steady_clock::now();
  delivered_ = 0;
  is_under_way_ = true;
  has_work_ = host_.self() < lanes_;
  if (is_alone()) return;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const int64_t bytes = byte_size(spec_.dtype, elements_[t]);
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
           name_of(spec_.kind), spec_.name, name_of_rank(communicator_, host_.rank_of(local)));
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

int Collective::host_index() const {
  return communicator_.members()[static_cast<size_t>(communicator_.rank())].host_index;
}

std::vector<Collective::Part> Collective::split_share(int64_t most_elements) const {
  std::vector<Part> parts;
  if (gather_ != nullptr) {
    // Where each rank is a host of its own, the lane's buffer would be what the one tensor is.
    const bool is_tensor = gather_->hosts() == communicator_.size() && spec_.elements.size() == 1 &&
                           spec_.elements[0] % ElementMap::kUnit == 0;
    parts.push_back({.begin = share_.first, .end = share_.second, .tensor = is_tensor ? 0 : -1});
    return parts;
  }
  Part small{.begin = share_.first, .end = share_.first};  // of what comes before the tensor
  const auto close = [&](int64_t at) {
    small.end = at;
    if (small.begin < small.end) parts.push_back({.begin = small.begin, .end = small.end});
  };
  map_.for_each_piece(share_.first, share_.second, [&](size_t tensor, int64_t first, int64_t last, int64_t at) {
    if (last - first < most_elements) {
      if (at + (last - first) - small.begin > most_elements) {
        close(at);
        small.begin = at;
      }
      return;
    }
    close(at);
    const int64_t units = (last - first + ElementMap::kUnit - 1) / ElementMap::kUnit;
    const int64_t count = (last - first + most_elements - 1) / most_elements;
    for (int64_t part = 0; part < count; ++part) {
      const auto [begin, end] = split_range(units, static_cast<int>(part), static_cast<int>(count));
      const int64_t from = begin * ElementMap::kUnit, to = std::min(end * ElementMap::kUnit, last - first);
      parts.push_back(
          {.begin = at + from, .end = at + to, .tensor = static_cast<int32_t>(tensor), .first = first + from});
    }
    small.begin = at + (last - first);
  });
  close(share_.second);
  return parts;
}

bool Collective::can_stay_in_place() const {
  return is_alone() &&
         (spec_.dtype == DType::f32 || (!has_sums(spec_.kind) && unpacked_size(spec_.dtype) == sizeof(float)));
}

void Collective::set_parts(std::vector<Part> parts, int64_t lane_elements) {
  parts_ = std::move(parts);
  bool needs_lane = false;
  for (Part& part : parts_) {
    if (!can_stay_in_place()) part.tensor = -1;
    needs_lane = needs_lane || part.tensor < 0;
  }
  // Pages that are never touched take no memory.
  if (needs_lane) lane_buffer_ = allocate_aligned(lane_elements * static_cast<int64_t>(sizeof(float)));
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
    move_in_host(0, gather_ != nullptr ? gather_->elements_of(host_index()) : map_.size());
    for (int local = 0; local < lanes_; ++local) finish_lane(local);
    host_.ring_all();
    return true;
  }
  const auto [begin, end] = share_;
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
    if (!has_sums(spec_.kind)) move_in_host(begin, end);
    for (Part& part : parts_) messages->submit(*part.job);
    return true;
  }
  const int64_t units = (end - begin) / ElementMap::kUnit;
  parallel_for(threads, units, kBytesPerThread / byte_size(spec_.dtype, ElementMap::kUnit),
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
    for (int local = 0; local < lanes_; ++local)
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
  for (int local = 0; local < lanes_; ++local)
    if (local != host_.self() && record(local).finished.load(std::memory_order_acquire) != run_)
      return host_.rank_of(local);
  return -1;
}

}  // namespace weft::comm
