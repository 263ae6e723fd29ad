#include "weft/cpu/native/support/broadcast_operand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "weft/cpu/native/support/channel_view.h"

namespace weft::native {

namespace {

template <typename Word>
void copy(Word* to, const Word* from, int64_t count) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(Word));
}

/// A plain operand read by a plain output.
BroadcastOperand plain_operand(const Shape& operand, const Shape& output) {
  const int rank = output.rank(), offset = rank - operand.rank();
  const std::vector<int64_t> own = row_major_strides(operand);
  BroadcastOperand result;
  result.kind = BroadcastOperand::Kind::strided;
  result.dims = output.dims();
  result.strides.assign(static_cast<size_t>(rank), 0);
  int first = rank, last = -1;  // axes along which the operand varies
  for (int axis = offset; axis < rank; ++axis) {
    if (operand[axis - offset] == 1) continue;
    result.strides[static_cast<size_t>(axis)] = own[static_cast<size_t>(axis - offset)];
    first = std::min(first, axis);
    last = axis;
  }
  if (last < 0) {
    result.kind = BroadcastOperand::Kind::scalar;
    return result;
  }
  bool adjacent = true;
  int64_t period = 1, inner = 1;
  for (int axis = first; axis < rank; ++axis) {
    if (axis > last) {
      inner *= output[axis];
    } else {
      period *= output[axis];
      adjacent = adjacent && (output[axis] == 1 || operand[axis - offset] == output[axis]);
    }
  }
  if (adjacent) {
    result.kind = BroadcastOperand::Kind::run;
    result.period = period;
    result.inner = inner;
  }
  return result;
}

}  // namespace

std::optional<BroadcastOperand> broadcast_operand(const TensorType& operand, const TensorType& output,
                                                  std::string& why_not) {
  if (operand.shape == output.shape && operand.layout == output.layout) return BroadcastOperand{};
  if (!operand.layout.is_plain() || (operand.shape == output.shape && output.elements() != 1)) {
    why_not = fmt::format("operand {} has another layout than the result {}", to_string(operand), to_string(output));
    return std::nullopt;
  }
  if (operand.shape.rank() > output.shape.rank()) {
    why_not = fmt::format("operand {} has more dimensions than the result {}", to_string(operand), to_string(output));
    return std::nullopt;
  }
  BroadcastOperand result = plain_operand(operand.shape, output.shape);
  if (output.layout.is_plain() || result.kind == BroadcastOperand::Kind::scalar) return result;
  const auto view = channel_view(output);
  const int rank = operand.shape.rank();
  const bool per_channel = output.shape.rank() == 4 && rank >= 3 && operand.shape[rank - 3] == output.shape[1] &&
                           operand.elements() == output.shape[1];
  if (!view || !per_channel) {
    why_not = fmt::format("operand {} broadcast to layout {}", to_string(operand), to_string(output.layout));
    return std::nullopt;
  }
  result.period = output.shape[1];
  if (view->groups == 1 && output.layout.blocks.empty()) {
    result.kind = BroadcastOperand::Kind::run;
    result.inner = 1;
  } else {
    result.kind = BroadcastOperand::Kind::blocked;
    result.inner = view->width;
    result.positions = view->rows;
  }
  return result;
}

template <typename Word>
void BroadcastOperand::gather(const Word* from, int64_t begin, int64_t count, Word* to) const {
  switch (kind) {
    case Kind::direct:
      copy(to, from + begin, count);
      return;
    case Kind::scalar:
      std::fill(to, to + count, *from);
      return;
    case Kind::run: {
      int64_t at = begin / inner % period, within = begin % inner;
      while (count > 0) {
        const int64_t piece = inner == 1 ? std::min(count, period - at) : std::min(count, inner - within);
        if (inner == 1) {
          copy(to, from + at, piece);
          at = 0;
        } else {
          std::fill(to, to + piece, from[at]);
          within = 0;
          at = at + 1 == period ? 0 : at + 1;
        }
        to += piece;
        count -= piece;
      }
      return;
    }
    case Kind::blocked: {
      const int64_t blocks = (period + inner - 1) / inner;
      int64_t row = begin / inner;  // chunks begin at whole rows
      while (count > 0) {
        const int64_t block = row / positions % blocks;
        const int64_t rows = std::min((count + inner - 1) / inner, positions - row % positions);
        const int64_t real = std::min(inner, period - block * inner);
        const int64_t piece = std::min(count, rows * inner);
        for (int64_t i = 0; i < piece; i += inner) {
          const int64_t present = std::min(real, piece - i);
          copy(to + i, from + block * inner, present);
          std::fill(to + i + present, to + std::min(i + inner, piece), Word{});
        }
        row += rows;
        to += piece;
        count -= piece;
      }
      return;
    }
    case Kind::strided: {
      const size_t rank = dims.size();
      const size_t last = rank - 1;
      while (count > 0) {
        int64_t rest = begin / dims[last], offset = begin % dims[last] * strides[last];
        for (size_t axis = last; axis-- > 0;) {
          offset += rest % dims[axis] * strides[axis];
          rest /= dims[axis];
        }
        const int64_t piece = std::min(count, dims[last] - begin % dims[last]);
        if (strides[last] == 1) {
          copy(to, from + offset, piece);
        } else {
          for (int64_t i = 0; i < piece; ++i) to[i] = from[offset + i * strides[last]];
        }
        begin += piece;
        to += piece;
        count -= piece;
      }
      return;
    }
  }
}

template void BroadcastOperand::gather(const float*, int64_t, int64_t, float*) const;
template void BroadcastOperand::gather(const Bf16*, int64_t, int64_t, Bf16*) const;

}  // namespace weft::native
