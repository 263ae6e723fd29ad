// Layouts with a channel dimension, seen as one pattern: groups of `width` adjacent channels; each group has `spans`
// runs of `rows` rows, and a row holds the group's channels of one position.
//   aBcd16b     groups C/16, width 16, spans N, rows H*W; any other block likewise
//   acdb, rank 2   groups 1, width C, spans 1, rows N*H*W
//   plain NCHW  groups C, width 1, spans N, rows H*W (a row is one number, rows are adjacent)
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "weft/base/parallel.h"
#include "weft/tensor/tensor.h"

namespace weft::native {

struct ChannelView {
  int64_t channels = 0;  // logical; groups * width where nothing is padded
  int64_t groups = 0, width = 0, spans = 0, rows = 0;
  int64_t group_stride = 0, span_stride = 0, row_stride = 0;  // in elements

  int64_t padded_channels() const { return groups * width; }
  int64_t rows_per_group() const { return spans * rows; }
  int64_t elements() const { return padded_channels() * rows_per_group(); }
  int64_t offset(int64_t group, int64_t span, int64_t row) const {
    return group * group_stride + span * span_stride + row * row_stride;
  }
};

/// nullopt where the layout is none of the above (rank 2 plain; rank 4 plain, channels-last, blocked by channel).
std::optional<ChannelView> channel_view(const TensorType& type);

/// Channels that lie side by side in one pixel of an image; 0 where the layout has no such pixels.
int64_t adjacent_channels(const TensorType& type);

/// Calls body(offset, row_count) for chunks of at most `chunk` rows which cover rows [begin, end) of a group,
/// counted through all its spans.
template <typename Body>
void for_each_chunk(const ChannelView& view, int64_t group, int64_t begin, int64_t end, int64_t chunk, Body&& body) {
  while (begin < end) {
    const int64_t span = begin / view.rows, row = begin % view.rows;
    const int64_t count = std::min({chunk, view.rows - row, end - begin});
    body(view.offset(group, span, row), count);
    begin += count;
  }
}

/// The same chunks, last first: what was touched last is still in cache.
template <typename Body>
void for_each_chunk_reversed(const ChannelView& view, int64_t group, int64_t begin, int64_t end, int64_t chunk,
                             Body&& body) {
  while (begin < end) {
    const int64_t span = (end - 1) / view.rows, row_end = (end - 1) % view.rows + 1;
    const int64_t count = std::min({chunk, row_end, end - begin});
    body(view.offset(group, span, row_end - count), count);
    end -= count;
  }
}

/// How a two-pass channel kernel is spread over threads: whole groups per thread where there are enough, so that the
/// second pass finds the group in cache; else each group's rows are cut into `slices`, one group after the other.
struct ChannelSplit {
  int pool = 1;                 // threads of a step
  int threads = 1, slices = 1;  // of them those that work
  int64_t chunk_rows = 1;       // 4096 numbers: they fit the first-level cache twice
  int64_t apply_rows = 1;       // the same where a row is more than a vector, else long runs, which the memory likes
};
ChannelSplit split_channels(const ChannelView& view, int threads);

}  // namespace weft::native
