// What each kind of collective moves: on a host from rank to rank, to the buffer of a lane and back, and to and from
// memory that peers see.
#include <cstring>

#include "weft/comm/collective.h"
#include "weft/comm/sum.h"

namespace weft::comm {

namespace {

std::byte* advance(void* data, DType dtype, int64_t elements) {
  return static_cast<std::byte*>(data) + byte_size(dtype, elements);
}

/// Elements of a tensor, as they are, to and from f32 or as many bytes, in which they travel.
void copy_to_lane(DType dtype, const void* from, float* to, int64_t count) {
  if (unpacked_size(dtype) == sizeof(float))
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  else
    widen_to_f32(DType::bf16, from, to, count);
}
void copy_from_lane(DType dtype, const float* from, void* to, int64_t count) {
  if (unpacked_size(dtype) == sizeof(float))
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  else
    narrow_from_f32(DType::bf16, from, to, count);
}

}  // namespace

std::span<const void* const> Collective::sources(size_t tensor) const {
  const auto ranks = static_cast<size_t>(host_.size());
  return std::span(sources_).subspan(tensor * ranks, ranks);
}

std::span<void* const> Collective::targets(size_t tensor) const {
  const auto ranks = static_cast<size_t>(host_.size());
  const std::span<void* const> all = std::span(operands_).subspan(tensor * ranks, ranks);
  if (spec().kind != CollectiveKind::reduce) return all;
  return has_root_here() ? all.subspan(static_cast<size_t>(layout_.root_local()), 1) : all.first(0);
}

void Collective::copy_staged(int64_t begin, int64_t end, bool in) {
  layout_.map().for_each_piece(begin, end, [&](size_t tensor, int64_t first, int64_t last, int64_t) {
    if (is_staged_[tensor] == 0) return;
    std::byte* const own = advance(tensors_[tensor], spec().dtype, first);
    std::byte* const shared = advance(staging(host_.self(), tensor), spec().dtype, first);
    std::memcpy(in ? shared : own, in ? own : shared, static_cast<size_t>(byte_size(spec().dtype, last - first)));
  });
}

void Collective::copy_staged_parts(bool in) {
  for (size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
    const int64_t begin = layout_.map().begin_of(tensor) + communicator_.rank() * spec().elements[tensor];
    copy_staged(begin, begin + spec().elements[tensor], in);
  }
}

/// Operands that peers cannot see are copied to where they can.
void Collective::copy_in() {
  if (spec().kind == CollectiveKind::all_gather) return copy_staged_parts(/*in=*/true);
  if (spec().kind == CollectiveKind::broadcast && !is_root()) return;
  if (writes_staged_) return copy_staged(0, layout_.map().size(), /*in=*/true);
  // But for what this rank sums.
  copy_staged(0, layout_.share().first, /*in=*/true);
  copy_staged(layout_.share().second, layout_.map().size(), /*in=*/true);
}

/// And results back.
void Collective::copy_out() {
  if (spec().kind == CollectiveKind::reduce_scatter) return copy_staged_parts(/*in=*/false);
  if (spec().kind == CollectiveKind::broadcast && is_root()) return;
  if (spec().kind == CollectiveKind::reduce && !is_root()) return;
  if (writes_staged_) return copy_staged(0, layout_.map().size(), /*in=*/false);
  copy_staged(0, layout_.share().first, /*in=*/false);
  copy_staged(layout_.share().second, layout_.map().size(), /*in=*/false);
}

/// Elements of the row that this host can do alone.
void Collective::move_in_host(int64_t begin, int64_t end) {
  if (spec().kind == CollectiveKind::all_gather)
    return layout_.gather()->spread(layout_.host_index(), begin, end, operands_);
  if (spec().kind == CollectiveKind::reduce_scatter)
    return layout_.gather()->sum_to_owners(layout_.host_index(), begin, end, sources_, operands_, factor_);
  if (spec().kind == CollectiveKind::broadcast && !has_root_here()) return;
  layout_.map().for_each_piece(begin, end, [&](size_t tensor, int64_t first, int64_t last, int64_t) {
    if (spec().kind != CollectiveKind::broadcast)
      return sum_to_all(spec().dtype, sources(tensor), targets(tensor), first, last, factor_);
    const std::span<void* const> all = targets(tensor);
    const std::byte* const from = advance(all[static_cast<size_t>(layout_.root_local())], spec().dtype, first);
    for (size_t local = 0; local < all.size(); ++local)
      if (local != static_cast<size_t>(layout_.root_local()))
        std::memcpy(advance(all[local], spec().dtype, first), from,
                    static_cast<size_t>(byte_size(spec().dtype, last - first)));
  });
}

/// With what this host gives to the others.
void Collective::fill_lane(const Part& part) {
  float* const to = lane(part);
  const auto own = static_cast<size_t>(layout_.host_index());
  if (spec().kind == CollectiveKind::all_gather)
    return layout_.gather()->pack(layout_.host_index(), part.begin, part.end, operands_,
                                  to + layout_.lane_begins()[own]);
  if (spec().kind == CollectiveKind::reduce_scatter) {
    for (int owner = 0; owner < layout_.gather()->hosts(); ++owner) {
      const auto [begin, end] = layout_.gather()->share(owner, host_.self(), layout_.lanes());
      layout_.gather()->sum(owner, begin, end, sources_, static_cast<size_t>(host_.size()),
                            to + layout_.lane_begins()[static_cast<size_t>(owner)]);
    }
    return;
  }
  if (spec().kind == CollectiveKind::broadcast && !has_root_here()) return;
  layout_.map().for_each_piece(part.begin, part.end, [&](size_t tensor, int64_t first, int64_t last, int64_t at) {
    if (spec().kind != CollectiveKind::broadcast)
      return sum_to_f32(spec().dtype, sources(tensor), to + (at - part.begin), first, last);
    void* const from = targets(tensor)[static_cast<size_t>(layout_.root_local())];
    copy_to_lane(spec().dtype, advance(from, spec().dtype, first), to + (at - part.begin), last - first);
  });
}

/// What came, to the ranks of this host that get it.
void Collective::empty_lane(const Part& part) {
  const auto ranks = static_cast<size_t>(host_.size());
  const auto own = static_cast<size_t>(layout_.host_index());
  if (part.tensor >= 0) {
    // It lies where it shall, but for the mean.
    if (factor_ == 1.0f) return;
    if (layout_.gather() == nullptr) return scale_f32(part.job->buffer, part.end - part.begin, factor_);
    return scale_f32(part.job->buffer + layout_.lane_begins()[own],
                     layout_.lane_begins()[own + 1] - layout_.lane_begins()[own], factor_);
  }
  const float* const from = lane(part);
  if (spec().kind == CollectiveKind::all_gather) {
    for (int giver = 0; giver < layout_.gather()->hosts(); ++giver) {
      const auto [begin, end] = layout_.gather()->share(giver, host_.self(), layout_.lanes());
      if (giver != layout_.host_index())
        layout_.gather()->unpack(giver, begin, end, from + layout_.lane_begins()[static_cast<size_t>(giver)], operands_,
                                 ranks);
    }
    return;
  }
  if (spec().kind == CollectiveKind::reduce_scatter)
    return layout_.gather()->give_to_owners(layout_.host_index(), part.begin, part.end,
                                            from + layout_.lane_begins()[own], operands_, factor_);
  if (spec().kind == CollectiveKind::broadcast && has_root_here()) return;
  layout_.map().for_each_piece(part.begin, part.end, [&](size_t tensor, int64_t first, int64_t last, int64_t at) {
    if (spec().kind != CollectiveKind::broadcast)
      return scale_to_all(spec().dtype, from + (at - part.begin), targets(tensor), first, last, factor_);
    for (void* const target : targets(tensor))
      copy_from_lane(spec().dtype, from + (at - part.begin), advance(target, spec().dtype, first), last - first);
  });
}

}  // namespace weft::comm
