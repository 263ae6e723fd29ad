// Integers of 8 bits that stand for reals, by weft/ops/integer/requantization.h: what all kernels give the bits of.
#include "weft/ops/integer/quantized.h"

#include <algorithm>
#include <span>
#include <vector>

#include "weft/cpu/reference/conv_taps.h"
#include "weft/cpu/reference/reference.h"

namespace weft::reference {
namespace {

using ops::IntegerRange;
using ops::Requantization;

int32_t byte_at(DType dtype, const void* data, int64_t index) {
  return dtype == DType::i8 ? static_cast<const int8_t*>(data)[index] : static_cast<const uint8_t*>(data)[index];
}
void store_byte(DType dtype, void* data, int64_t index, int32_t value) {
  if (dtype == DType::i8)
    static_cast<int8_t*>(data)[index] = static_cast<int8_t>(value);
  else
    static_cast<uint8_t*>(data)[index] = static_cast<uint8_t>(value);
}

/// Which of an operand's numbers belongs to a channel: all channels share one that has no dimension.
int64_t per_channel(const TensorType& type, int64_t channel) { return type.shape.rank() == 0 ? 0 : channel; }

/// The channel of each element of a row-major tensor.
struct ChannelWalk {
  int64_t channels = 1, inner = 1;

  ChannelWalk(const Shape& shape, int64_t axis) {
    if (shape.rank() == 0) return;
    const auto at = static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
    if (at < 0 || at >= shape.rank()) return;  // nobody has a number per channel
    channels = shape[at];
    for (int behind = at + 1; behind < shape.rank(); ++behind) inner *= shape[behind];
  }
  int64_t channel(int64_t index) const { return index / inner % channels; }
  /// The place of an element's factor where `group` elements along the axis share one.
  int64_t group_of(int64_t index, int64_t group) const {
    const int64_t groups = channels / group + (channels % group != 0 ? 1 : 0);
    return (index / (inner * channels) * groups + channel(index) / group) * inner + index % inner;
  }
};

/// From a sum to 8 bits; operands from `first` on: factor, zero point, bias.
struct Requantizer {
  TensorType factor_type, zero_type;
  Requantization rule;
  size_t first;
  bool has_bias;

  Requantizer(const NodeSignature& node, size_t first_operand)
      : factor_type(node.inputs[first_operand]),
        zero_type(node.inputs[first_operand + 1]),
        rule(ops::requantization_of(node.attributes, node.outputs[0].dtype)),
        first(first_operand),
        has_bias(node.inputs.size() > first_operand + 2),
        bias_type(has_bias ? node.inputs[first_operand + 2] : TensorType{}) {}

  void store(const KernelArguments& call, int64_t index, int64_t channel, int32_t sum) const {
    const float factor = input(call, first)[per_channel(factor_type, channel)];
    const int32_t zero = byte_at(zero_type.dtype, call.inputs[first + 1], 0);
    if (has_bias) sum = ops::add_wrapping(sum, input<int32_t>(call, first + 2)[per_channel(bias_type, channel)]);
    const int32_t value =
        rule.rounding == ops::RequantizeRounding::real
            ? ops::requantize_real(sum, factor, zero, rule.range)
            : ops::requantize_fixed(sum, ops::fixed_factor(factor, rule.multiplier_bits), zero, rule.range);
    store_byte(zero_type.dtype, call.outputs[0], index, value);
  }

 private:
  TensorType bias_type;
};

/// From a sum to f32; operands from 4 on: factor, bias.
struct Dequantizer {
  TensorType factor_type;
  bool has_bias;

  explicit Dequantizer(const NodeSignature& node) : factor_type(node.inputs[4]), has_bias(node.inputs.size() > 5) {}
  void store(const KernelArguments& call, int64_t index, int64_t channel, int32_t sum) const {
    float real = static_cast<float>(sum) * input(call, 4)[per_channel(factor_type, channel)];
    if (has_bias) real += input(call, 5)[channel];
    output(call, 0)[index] = real;
  }
};

/// What becomes of each sum: it is the result, or it is requantized, or it becomes a real.
using StoreSum = std::function<void(const KernelArguments&, int64_t index, int64_t channel, int32_t sum)>;
StoreSum store_of(const NodeSignature& node) {
  if (node.outputs[0].dtype == DType::i32)
    return
        [](const KernelArguments& call, int64_t index, int64_t, int32_t sum) { output<int32_t>(call, 0)[index] = sum; };
  if (node.outputs[0].dtype == DType::f32)
    return [dequantizer = Dequantizer(node)](const KernelArguments& call, int64_t index, int64_t channel, int32_t sum) {
      dequantizer.store(call, index, channel, sum);
    };
  return [requantizer = Requantizer(node, 4)](const KernelArguments& call, int64_t index, int64_t channel,
                                              int32_t sum) { requantizer.store(call, index, channel, sum); };
}

/// An operand of a product with its zero point.
struct Factor {
  DType dtype;
  size_t operand;
  bool has_zero;
  TensorType zero_type;

  Factor(const NodeSignature& node, size_t index)
      : dtype(node.inputs[index].dtype),
        operand(index),
        has_zero(node.inputs.size() > index + 2),
        zero_type(has_zero ? node.inputs[index + 2] : TensorType{}) {}
  int32_t at(const KernelArguments& call, int64_t index) const { return byte_at(dtype, call.inputs[operand], index); }
  int32_t zero(const KernelArguments& call, int64_t channel) const {
    return has_zero ? byte_at(dtype, call.inputs[operand + 2], per_channel(zero_type, channel)) : 0;
  }
  /// All numbers of the operand less their zero points; each channel has `channel_size` of them.
  std::vector<int32_t> all(const KernelArguments& call, int64_t count, int64_t channel_size) const {
    std::vector<int32_t> numbers(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) numbers[static_cast<size_t>(i)] = at(call, i) - zero(call, i / channel_size);
    return numbers;
  }
};

Body prepare_product(const NodeSignature& node) {
  const Shape &a = node.inputs[0].shape, &b = node.inputs[1].shape, &out = node.outputs[0].shape;
  const int64_t rows = out[out.rank() - 2], columns = out[out.rank() - 1], inner = a[a.rank() - 1];
  const auto leading = [](const Shape& shape) { return Shape(std::vector<int64_t>(shape.begin(), shape.end() - 2)); };
  const StridedView a_stack = broadcast_view(leading(a), leading(out)),
                    b_stack = broadcast_view(leading(b), leading(out));
  return [=, left = Factor(node, 0), right = Factor(node, 1), store = store_of(node),
          stacks = leading(out).elements()](const KernelArguments& call) {
    for (int64_t stack = 0; stack < stacks; ++stack) {
      const int64_t a_first = a_stack(stack) * rows * inner, b_first = b_stack(stack) * inner * columns;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column) {
          const int32_t a_zero = left.zero(call, 0), b_zero = right.zero(call, column);
          uint32_t sum = 0;
          for (int64_t k = 0; k < inner; ++k)
            sum += static_cast<uint32_t>((left.at(call, a_first + row * inner + k) - a_zero) *
                                         (right.at(call, b_first + k * columns + column) - b_zero));
          store(call, (stack * rows + row) * columns + column, column, static_cast<int32_t>(sum));
        }
    }
  };
}

/// One row of sums of one output channel and input channel; `kernel` has `weight`'s taps, and its zero point is off.
void add_taps(const ops::IntegerWindow& window, const Shape& in, const Shape& weight, int64_t y, const int32_t* image,
              const int32_t* kernel, std::span<uint32_t> sums, int64_t rows_out) {
  for (int64_t i = 0; i < weight[2]; ++i) {
    const TapReach rows(rows_out, in[2], window.stride[0], window.padding[0], window.dilation[0], i);
    if (!rows.serves(y)) continue;
    const int32_t* line = image + rows.source(y) * in[3];
    for (int64_t j = 0; j < weight[3]; ++j) {
      const TapReach columns(std::ssize(sums), in[3], window.stride[1], window.padding[1], window.dilation[1], j);
      const int32_t factor = kernel[i * weight[3] + j];
      for (int64_t x = columns.first; x < columns.end; ++x)
        sums[static_cast<size_t>(x)] += static_cast<uint32_t>(line[columns.source(x)] * factor);
    }
  }
}

/// What is outside of the image is the zero point itself: it adds nothing.
Body prepare_convolution(const NodeSignature& node) {
  const Shape in = node.inputs[0].shape, weight = node.inputs[1].shape, out = node.outputs[0].shape;
  return [=, window = ops::integer_window(node.attributes), image = Factor(node, 0), filter = Factor(node, 1),
          store = store_of(node)](const KernelArguments& call) {
    const int64_t group_outputs = out[1] / window.groups, taps = weight[2] * weight[3];
    const std::vector<int32_t> images = image.all(call, in.elements(), in.elements());
    const std::vector<int32_t> kernels = filter.all(call, weight.elements(), weight[1] * taps);
    std::vector<uint32_t> sums(static_cast<size_t>(out[3]));
    for (int64_t row = 0; row < out[0] * out[1] * out[2]; ++row) {
      const int64_t y = row % out[2], o = row / out[2] % out[1], n = row / (out[2] * out[1]);
      std::ranges::fill(sums, 0);
      for (int64_t c = 0; c < weight[1]; ++c)
        add_taps(window, in, weight, y, &images[((n * in[1] + o / group_outputs * weight[1] + c) * in[2]) * in[3]],
                 &kernels[(o * weight[1] + c) * taps], sums, out[2]);
      for (int64_t x = 0; x < out[3]; ++x)
        store(call, row * out[3] + x, o, static_cast<int32_t>(sums[static_cast<size_t>(x)]));
    }
  };
}

Body prepare_requantize(const NodeSignature& node) {
  const ChannelWalk walk(node.inputs[0].shape, node.attributes.integer("axis"));
  return [walk, requantizer = Requantizer(node, 1), count = node.outputs[0].elements()](const KernelArguments& call) {
    for (int64_t i = 0; i < count; ++i) requantizer.store(call, i, walk.channel(i), input<int32_t>(call, 0)[i]);
  };
}

Body prepare_quantize(const NodeSignature& node) {
  const ChannelWalk walk(node.inputs[0].shape, node.attributes.integer("axis"));
  const IntegerRange range = node.outputs[0].dtype == DType::i8 ? IntegerRange{-128, 127} : IntegerRange{0, 255};
  return [walk, range, type = node.inputs[1], out = node.outputs[0]](const KernelArguments& call) {
    for (int64_t i = 0; i < out.elements(); ++i) {
      const int64_t at = per_channel(type, walk.channel(i));
      store_byte(out.dtype, call.outputs[0], i,
                 ops::quantize(input(call, 0)[i], input(call, 1)[at], byte_at(out.dtype, call.inputs[2], at), range));
    }
  };
}

Body prepare_dequantize(const NodeSignature& node) {
  const ChannelWalk walk(node.inputs[0].shape, node.attributes.integer("axis"));
  return [walk, type = node.inputs[1], dtype = node.inputs[0].dtype, group = node.attributes.integer("group"),
          count = node.outputs[0].elements()](const KernelArguments& call) {
    const auto integer_at = [dtype](const void* data, int64_t index) {
      return static_cast<int32_t>(load_as<int64_t>(dtype, data, index));
    };
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = group > 0 ? walk.group_of(i, group) : per_channel(type, walk.channel(i));
      output(call, 0)[i] =
          ops::dequantize(integer_at(call.inputs[0], i), input(call, 1)[at], integer_at(call.inputs[2], at));
    }
  };
}

Body prepare_add(const NodeSignature& node) {
  const DType a = node.inputs[0].dtype, b = node.inputs[1].dtype, out = node.outputs[0].dtype;
  return [a, b, out, range = ops::range_of(node.attributes, out),
          count = node.outputs[0].elements()](const KernelArguments& call) {
    const auto real = [&](DType dtype, size_t side, int64_t index) {
      return ops::dequantize(byte_at(dtype, call.inputs[side], index), *input(call, 2 + 2 * side),
                             byte_at(dtype, call.inputs[3 + 2 * side], 0));
    };
    for (int64_t i = 0; i < count; ++i) {
      const float left = real(a, 0, i), right = real(b, 1, i);
      store_byte(out, call.outputs[0], i,
                 ops::quantize(left + right, *input(call, 6), byte_at(out, call.inputs[7], 0), range));
    }
  };
}

Body prepare_affine(const NodeSignature& node) {
  const ChannelWalk walk(node.inputs[0].shape, node.attributes.integer("axis"));
  const DType from = node.inputs[0].dtype, to = node.outputs[0].dtype;
  return [walk, from, to, factor_type = node.inputs[1], range = ops::range_of(node.attributes, to),
          count = node.outputs[0].elements()](const KernelArguments& call) {
    const int32_t zero = byte_at(to, call.inputs[3], 0);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = per_channel(factor_type, walk.channel(i));
      store_byte(to, call.outputs[0], i,
                 ops::affine(byte_at(from, call.inputs[0], i), input(call, 1)[at], input(call, 2)[at], zero, range));
    }
  };
}

}  // namespace

void add_quantized(KernelTable& table) {
  for (const char* op : {"integer_matmul", "quantized_matmul", "dequantized_matmul"})
    add_plain(table, op, prepare_product, Accepts::any_dtype);
  for (const char* op : {"integer_conv2d", "quantized_conv2d"})
    add_plain(table, op, prepare_convolution, Accepts::any_dtype);
  add_plain(table, "requantize", prepare_requantize, Accepts::any_dtype);
  add_plain(table, "quantize_linear", prepare_quantize, Accepts::any_dtype);
  add_plain(table, "dequantize_linear", prepare_dequantize, Accepts::any_dtype);
  add_plain(table, "quantized_add", prepare_add, Accepts::any_dtype);
  add_plain(table, "quantized_affine", prepare_affine, Accepts::any_dtype);
}

}  // namespace weft::reference
