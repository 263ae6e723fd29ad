#include "weft/comm/gather_map.h"

#include <cstring>
#include <utility>

#include "weft/comm/sum.h"

namespace weft::comm {

GatherMap::GatherMap(std::vector<int64_t> elements, const std::vector<Member>& members, DType dtype)
    : elements_(std::move(elements)), dtype_(dtype) {
  for (size_t rank = 0; rank < members.size(); ++rank) {
    const auto host = static_cast<size_t>(members[rank].host_index);
    if (host >= ranks_.size()) ranks_.resize(host + 1);
    ranks_[host].push_back(static_cast<int>(rank));
  }
  for (const auto& ranks : ranks_) {
    std::vector<Part> parts;
    std::vector<int64_t> counts;
    for (size_t local = 0; local < ranks.size(); ++local)
      for (size_t tensor = 0; tensor < elements_.size(); ++tensor) {
        parts.push_back({ranks[local], local, tensor});
        counts.push_back(elements_[tensor]);
      }
    parts_.push_back(std::move(parts));
    rows_.emplace_back(counts);
  }
}

std::vector<int64_t> GatherMap::begins_in_lane(int lane, int lanes) const {
  std::vector<int64_t> begins{0};
  for (int host = 0; host < hosts(); ++host) {
    const auto [begin, end] = share(host, lane, lanes);
    begins.push_back(begins.back() + end - begin);
  }
  return begins;
}

std::byte* GatherMap::at(void* tensor, const Part& part, int64_t first) const {
  return static_cast<std::byte*>(tensor) + byte_size(dtype_, place_of(part, first));
}

void GatherMap::spread(int host, int64_t begin, int64_t end, std::span<void* const> tensors) const {
  const size_t ranks = ranks_[static_cast<size_t>(host)].size();
  rows_[static_cast<size_t>(host)].for_each_piece(begin, end, [&](size_t piece, int64_t first, int64_t last, int64_t) {
    const Part& owned = part(host, piece);
    const std::byte* const from = at(tensors[owned.tensor * ranks + owned.local], owned, first);
    for (size_t local = 0; local < ranks; ++local)
      if (local != owned.local)
        std::memcpy(at(tensors[owned.tensor * ranks + local], owned, first), from,
                    static_cast<size_t>(byte_size(dtype_, last - first)));
  });
}

void GatherMap::pack(int host, int64_t begin, int64_t end, std::span<void* const> tensors, float* lane) const {
  const size_t ranks = ranks_[static_cast<size_t>(host)].size();
  rows_[static_cast<size_t>(host)].for_each_piece(
      begin, end, [&](size_t piece, int64_t first, int64_t last, int64_t place) {
        const Part& owned = part(host, piece);
        const std::byte* const from = at(tensors[owned.tensor * ranks + owned.local], owned, first);
        float* const to = lane + (place - begin);
        if (unpacked_size(dtype_) == sizeof(float))
          std::memcpy(to, from, static_cast<size_t>(last - first) * sizeof(float));
        else
          widen_to_f32(DType::bf16, from, to, last - first);
      });
}

void GatherMap::unpack(int from_host, int64_t begin, int64_t end, const float* lane, std::span<void* const> tensors,
                       size_t ranks_here) const {
  rows_[static_cast<size_t>(from_host)].for_each_piece(
      begin, end, [&](size_t piece, int64_t first, int64_t last, int64_t place) {
        const Part& owned = part(from_host, piece);
        const float* const from = lane + (place - begin);
        for (size_t local = 0; local < ranks_here; ++local) {
          std::byte* const to = at(tensors[owned.tensor * ranks_here + local], owned, first);
          if (unpacked_size(dtype_) == sizeof(float))
            std::memcpy(to, from, static_cast<size_t>(last - first) * sizeof(float));
          else
            narrow_from_f32(DType::bf16, from, to, last - first);
        }
      });
}

void GatherMap::sum(int host, int64_t begin, int64_t end, std::span<const void* const> tensors, size_t ranks_here,
                    float* lane) const {
  rows_[static_cast<size_t>(host)].for_each_piece(
      begin, end, [&](size_t piece, int64_t first, int64_t last, int64_t place) {
        const Part& owned = part(host, piece);
        sum_to_f32(dtype_, tensors.subspan(owned.tensor * ranks_here, ranks_here), lane + (place - begin),
                   place_of(owned, first), place_of(owned, last));
      });
}

void GatherMap::sum_to_owners(int host, int64_t begin, int64_t end, std::span<const void* const> sources,
                              std::span<void* const> tensors, float factor) const {
  const size_t ranks = ranks_[static_cast<size_t>(host)].size();
  rows_[static_cast<size_t>(host)].for_each_piece(begin, end, [&](size_t piece, int64_t first, int64_t last, int64_t) {
    const Part& owned = part(host, piece);
    sum_to_all(dtype_, sources.subspan(owned.tensor * ranks, ranks),
               tensors.subspan(owned.tensor * ranks + owned.local, 1), place_of(owned, first), place_of(owned, last),
               factor);
  });
}

void GatherMap::give_to_owners(int host, int64_t begin, int64_t end, const float* lane, std::span<void* const> tensors,
                               float factor) const {
  const size_t ranks = ranks_[static_cast<size_t>(host)].size();
  rows_[static_cast<size_t>(host)].for_each_piece(
      begin, end, [&](size_t piece, int64_t first, int64_t last, int64_t place) {
        const Part& owned = part(host, piece);
        scale_to_all(dtype_, lane + (place - begin), tensors.subspan(owned.tensor * ranks + owned.local, 1),
                     place_of(owned, first), place_of(owned, last), factor);
      });
}

}  // namespace weft::comm
