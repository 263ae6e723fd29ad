#include "weft/cpu/native/support/channel_view.h"

namespace weft::native {

std::optional<ChannelView> channel_view(const TensorType& type) {
  const Shape& shape = type.shape;
  const Layout& layout = type.layout;
  const int rank = shape.rank();
  if (rank != 2 && rank != 4) return std::nullopt;
  const int64_t batch = shape[0], channels = shape[1], positions = rank == 4 ? shape[2] * shape[3] : 1;
  ChannelView view;
  view.channels = channels;
  const bool row_major = layout.order.empty() || layout.order == std::vector<int>{0, 1, 2, 3};
  if ((layout.is_plain() && positions == 1) || (rank == 4 && layout == channels_last(4))) {
    view.groups = 1;
    view.width = view.row_stride = channels;
    view.spans = 1;
    view.rows = batch * positions;
  } else if (layout.is_plain()) {
    view.groups = channels;
    view.width = view.row_stride = 1;
    view.spans = batch;
    view.rows = view.group_stride = positions;
    view.span_stride = channels * positions;
  } else if (rank == 4 && row_major && layout.blocks.size() == 1 && layout.blocks.front().axis == 1) {
    const int64_t block = layout.blocks.front().size;
    view.groups = (channels + block - 1) / block;
    view.width = view.row_stride = block;
    view.spans = batch;
    view.rows = positions;
    view.group_stride = positions * block;
    view.span_stride = view.groups * view.group_stride;
  } else {
    return std::nullopt;
  }
  return view;
}

int64_t adjacent_channels(const TensorType& type) {
  const Layout& layout = type.layout;
  if (layout.is_plain()) return 1;
  if (layout == channels_last(4)) return type.shape[1];
  const bool row_major = layout.order.empty() || layout.order == std::vector<int>{0, 1, 2, 3};
  return row_major && layout.blocks.size() == 1 && layout.blocks.front().axis == 1 ? layout.blocks.front().size : 0;
}

ChannelSplit split_channels(const ChannelView& view, int threads) {
  ChannelSplit split;
  split.pool = threads;
  split.chunk_rows = std::max<int64_t>(64, 4096 / std::max<int64_t>(1, view.width));
  split.apply_rows = view.width <= 16 ? 8 * split.chunk_rows : split.chunk_rows;
  if (view.elements() < 8192) threads = 1;
  split.threads = threads;
  const bool enough = view.groups >= threads && (view.groups % threads == 0 || view.groups >= 4 * threads);
  if (!enough)
    split.slices = static_cast<int>(std::clamp<int64_t>(view.rows_per_group() / split.chunk_rows, 1, threads));
  return split;
}

}  // namespace weft::native
