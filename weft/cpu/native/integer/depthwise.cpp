// Depthwise convolutions of integers. Where the processor has VNNI and weights less their zero points fit 8 bits, by
// depthwise_vnni.h; else position by position, a vector of channels at a time, tap by tap.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "weft/base/parallel.h"
#include "weft/cpu/native/integer/depthwise_vnni.h"
#include "weft/cpu/native/integer/images.h"
#include "weft/cpu/native/integer/row_ends.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

constexpr int64_t kMostTaps = 256;
constexpr int64_t kLeastWork = 1 << 17;  // multiplications that are worth a second thread

class IntegerDepthwise : public Kernel {
 public:
  IntegerDepthwise(const NodeSignature& node, IntegerImages images, int threads, Isa isa)
      : node_(node), g_(std::move(images)), threads_(threads), loops_(row_loops_for(isa)) {
    if (result() == DType::i32) return;
    rule_ = ops::requantization_of(node.attributes, result());
    if (isa == Isa::avx512 && multiplies_bytes() && rule_.rounding == ops::RequantizeRounding::real)
      run_tile_ = vnni_depthwise_tile();
  }
  std::string name() const override { return "native:integer_depthwise"; }
  int64_t workspace_bytes() const override {
    const int64_t plain =
        align_up(2 * pairs() * g_.channels * 2) + (4 + threads_) * channel_bytes() + align_up(g_.channels);
    return run_tile_ == nullptr ? plain : std::max(plain, blocks_place(0) + threads_ * column_memory());
  }

  void run(const KernelArguments& arguments) override {
    const int64_t lines = g_.images * g_.out_rows;
    const int64_t work = lines * g_.out_columns * g_.channels * taps();
    const int64_t most = work < kLeastWork ? 1 : threads_;
    if (run_tile_ != nullptr && pack_blocks(arguments)) {
      parallel_run(threads_, static_cast<int>(std::min<int64_t>(most, lines)), [&](int part, int parts) {
        const auto [first, last] = split_range(lines, part, parts);
        for (int64_t line = first; line < last; ++line) run_blocks(arguments, line, part);
      });
      return;
    }
    const Call call = begin(arguments);
    parallel_run(threads_, static_cast<int>(std::min<int64_t>(most, lines)), [&](int part, int parts) {
      const auto [first, last] = split_range(lines, part, parts);
      auto* const sums = reinterpret_cast<int32_t*>(call.sums + part * channel_bytes());
      for (int64_t line = first; line < last; ++line) run_line(call, line, sums);
    });
  }

 private:
  DType result() const { return node_.outputs[0].dtype; }
  int64_t taps() const { return g_.kernel_rows * g_.kernel_columns; }
  int64_t channel_bytes() const { return align_up(g_.channels * 4); }

  int64_t pairs() const { return (taps() + 1) / 2; }

  int64_t blocks() const { return (g_.channels + kDepthwiseChannels - 1) / kDepthwiseChannels; }
  int64_t row_groups() const { return (g_.kernel_rows + kDepthwiseRows - 1) / kDepthwiseRows; }
  int64_t block_weights() const { return g_.kernel_columns * row_groups() * kDepthwiseGroup; }
  int64_t column_memory() const {
    return depthwise_columns(kDepthwiseResults, g_.kernel_columns, g_.window.stride[1], g_.window.dilation[1]) *
           row_groups() * kDepthwiseGroup;
  }
  /// In the workspace: channels outside the image; of each block the weights, what is added, factors; columns of each
  /// thread.
  int64_t weights_place() const { return align_up(blocks() * kDepthwiseChannels); }
  int64_t added_place(int64_t block) const {
    return weights_place() + blocks() * block_weights() + block * kDepthwiseChannels * 8;
  }
  int64_t blocks_place(int64_t thread) const { return added_place(blocks()) + thread * column_memory(); }

  /// The operands in the order of depthwise_vnni.h; false where a weight less its zero point does not fit 8 bits.
  bool pack_blocks(const KernelArguments& arguments) const {
    auto* const memory = static_cast<uint8_t*>(arguments.workspace);
    const DType dtype = node_.inputs[1].dtype;
    const bool is_signed_image = node_.inputs[0].dtype == DType::i8;
    const bool has_zero = node_.inputs.size() > 3, zero_per_channel = has_zero && node_.inputs[3].shape.rank() == 1;
    const int32_t image_zero = node_.inputs.size() > 2 ? byte_of(node_.inputs[0].dtype, arguments.inputs[2], 0) : 0;
    std::fill(memory, memory + weights_place(), static_cast<uint8_t>(image_zero));
    std::fill(memory + weights_place(), memory + added_place(0), uint8_t{0});
    const bool is_plain_i8 = dtype == DType::i8;
    for (int64_t c = 0; c < blocks() * kDepthwiseChannels; ++c) {
      const int64_t block = c / kDepthwiseChannels, place = depthwise_place(c % kDepthwiseChannels);
      auto* const added = reinterpret_cast<int32_t*>(memory + added_place(block));
      auto* const factors = reinterpret_cast<float*>(added + kDepthwiseChannels);
      added[place] = 0;
      factors[place] = 0;
      if (c >= g_.channels) continue;
      const int32_t own_zero = has_zero ? byte_of(dtype, arguments.inputs[3], zero_per_channel ? c : 0) : 0;
      uint8_t* const weights = memory + weights_place() + block * block_weights() + place * kDepthwiseRows;
      const int32_t sum = is_plain_i8 && own_zero == 0
                              ? place_taps(arguments.input<int8_t>(1) + c * taps(), weights)
                              : place_centred(dtype, arguments.inputs[1], c * taps(), own_zero, weights);
      if (sum == kDoesNotFit) return false;
      const int32_t bias = node_.inputs.size() > 6 ? arguments.input<int32_t>(6)[c] : 0;
      added[place] = ops::add_wrapping(-(image_zero + (is_signed_image ? 128 : 0)) * sum, bias);
      factors[place] = arguments.input(4)[node_.inputs[4].shape.rank() == 1 ? c : 0];
    }
    return true;
  }

  static constexpr int32_t kDoesNotFit = INT32_MIN;

  /// Of a channel's taps, from the place of the channel on.
  int64_t tap_place(int64_t row, int64_t column) const {
    return (column * row_groups() + row / kDepthwiseRows) * kDepthwiseGroup + row % kDepthwiseRows;
  }

  /// The sum of a channel's weights, which are put to their places.
  int32_t place_taps(const int8_t* from, uint8_t* to) const {
    int32_t sum = 0;
    for (int64_t row = 0; row < g_.kernel_rows; ++row)
      for (int64_t column = 0; column < g_.kernel_columns; ++column, ++from) {
        to[tap_place(row, column)] = static_cast<uint8_t>(*from);
        sum += *from;
      }
    return sum;
  }
  /// The same less the zero point; kDoesNotFit where that takes more than 8 bits.
  int32_t place_centred(DType dtype, const void* from, int64_t first, int32_t zero, uint8_t* to) const {
    int32_t sum = 0;
    for (int64_t tap = 0; tap < taps(); ++tap) {
      const int32_t weight = byte_of(dtype, from, first + tap) - zero;
      if (weight < -128 || weight > 127) return kDoesNotFit;
      to[tap_place(tap / g_.kernel_columns, tap % g_.kernel_columns)] = static_cast<uint8_t>(weight);
      sum += weight;
    }
    return sum;
  }

  void run_blocks(const KernelArguments& arguments, int64_t line, int thread) const {
    const int64_t n = line / g_.out_rows, y = line % g_.out_rows;
    auto* const memory = static_cast<uint8_t*>(arguments.workspace);
    const uint8_t* const image = arguments.input<uint8_t>(0) + n * g_.rows * g_.columns * g_.channels;
    const uint8_t* rows[kMostTaps + kDepthwiseRows];
    int64_t row_steps[kMostTaps + kDepthwiseRows];
    DepthwiseTile tile{};
    tile.rows = rows;
    tile.row_steps = row_steps;
    tile.width = g_.columns;
    tile.flip = node_.inputs[0].dtype == DType::i8 ? 0x80 : 0;
    tile.row_groups = row_groups();
    tile.kernel_columns = g_.kernel_columns;
    tile.stride = g_.window.stride[1];
    tile.dilation = g_.window.dilation[1];
    tile.zero_point = byte_of(result(), arguments.inputs[5], 0);
    tile.range = rule_.range;
    tile.is_signed = result() == DType::i8;
    tile.columns = memory + blocks_place(thread);
    tile.to_step = g_.channels;
    for (int64_t block = 0; block < blocks(); ++block) {
      const int64_t channel = block * kDepthwiseChannels;
      for (int64_t i = 0; i < row_groups() * kDepthwiseRows; ++i) {
        const int64_t row = y * g_.window.stride[0] - g_.window.padding[0] + i * g_.window.dilation[0];
        const bool inside = i < g_.kernel_rows && row >= 0 && row < g_.rows;
        rows[i] = inside ? image + row * g_.columns * g_.channels + channel : memory + channel;
        row_steps[i] = inside ? g_.channels : 0;
      }
      tile.outside = memory + channel;
      tile.channels = std::min(kDepthwiseChannels, g_.channels - channel);
      tile.weights = memory + weights_place() + block * block_weights();
      tile.added = reinterpret_cast<const int32_t*>(memory + added_place(block));
      tile.factors = reinterpret_cast<const float*>(tile.added + kDepthwiseChannels);
      for (int64_t x = 0; x < g_.out_columns; x += kDepthwiseResults) {
        tile.results = std::min(kDepthwiseResults, g_.out_columns - x);
        tile.first_column = x * tile.stride - g_.window.padding[1];
        tile.to = arguments.output<uint8_t>(0) + (line * g_.out_columns + x) * g_.channels + channel;
        run_tile_(tile);
      }
    }
  }

  /// What is read of the operands once, in the workspace.
  struct Call {
    const KernelArguments* arguments;
    const int16_t* weights;  // [pairs][channels][2]
    const int32_t* added;    // to each channel's sum
    ChannelFactors factors;
    const uint8_t* outside;  // channels of the image's zero point
    std::byte* sums;
  };

  Call begin(const KernelArguments& arguments) const {
    auto* const weights = static_cast<int16_t*>(arguments.workspace);
    std::byte* const behind = static_cast<std::byte*>(arguments.workspace) + align_up(2 * pairs() * g_.channels * 2);
    auto* const added = reinterpret_cast<int32_t*>(behind + 3 * channel_bytes());
    auto* const outside = reinterpret_cast<uint8_t*>(behind + (4 + threads_) * channel_bytes());
    const int32_t zero = node_.inputs.size() > 2 ? byte_of(node_.inputs[0].dtype, arguments.inputs[2], 0) : 0;
    std::fill(outside, outside + g_.channels, static_cast<uint8_t>(zero));
    std::fill(weights, weights + 2 * pairs() * g_.channels, int16_t{0});
    const DType dtype = node_.inputs[1].dtype;
    const bool has_zero = node_.inputs.size() > 3, zero_per_channel = has_zero && node_.inputs[3].shape.rank() == 1;
    for (int64_t c = 0; c < g_.channels; ++c) {
      const int32_t own_zero = has_zero ? byte_of(dtype, arguments.inputs[3], zero_per_channel ? c : 0) : 0;
      int32_t sum = 0;
      for (int64_t tap = 0; tap < taps(); ++tap) {
        const int32_t weight = byte_of(dtype, arguments.inputs[1], c * taps() + tap) - own_zero;
        weights[(tap / 2 * g_.channels + c) * 2 + tap % 2] = static_cast<int16_t>(weight);
        sum += weight;
      }
      const int32_t bias = node_.inputs.size() > 6 ? arguments.input<int32_t>(6)[c] : 0;
      added[c] = ops::add_wrapping(-zero * sum, bias);
    }
    return {&arguments, weights, added, read_factors(arguments, behind), outside, behind + 4 * channel_bytes()};
  }

  ChannelFactors read_factors(const KernelArguments& arguments, std::byte* memory) const {
    if (result() == DType::i32) return {};
    auto* const factors = reinterpret_cast<float*>(memory);
    auto* const multipliers = reinterpret_cast<int32_t*>(memory + channel_bytes());
    auto* const shifts = reinterpret_cast<int32_t*>(memory + 2 * channel_bytes());
    const bool per_channel = node_.inputs[4].shape.rank() == 1;
    for (int64_t c = 0; c < g_.channels; ++c) {
      factors[c] = arguments.input(4)[per_channel ? c : 0];
      const ops::FixedFactor fixed = ops::fixed_factor(factors[c], rule_.multiplier_bits);
      multipliers[c] = static_cast<int32_t>(fixed.multiplier);
      shifts[c] = fixed.shift;
    }
    return {factors, multipliers, shifts, byte_of(result(), arguments.inputs[5], 0), rule_.range};
  }

  void run_line(const Call& call, int64_t line, int32_t* sums) const {
    const int64_t n = line / g_.out_rows, y = line % g_.out_rows;
    const bool is_signed_image = node_.inputs[0].dtype == DType::i8;
    const void* taps[kMostTaps + 1];
    taps[2 * pairs() - 1] = call.outside;  // of weight 0 where there is no such tap
    const auto* const image = call.arguments->input<uint8_t>(0);
    for (int64_t x = 0; x < g_.out_columns; ++x) {
      int64_t tap = 0;
      for (int64_t i = 0; i < g_.kernel_rows; ++i) {
        const int64_t row = y * g_.window.stride[0] - g_.window.padding[0] + i * g_.window.dilation[0];
        for (int64_t j = 0; j < g_.kernel_columns; ++j, ++tap) {
          const int64_t column = x * g_.window.stride[1] - g_.window.padding[1] + j * g_.window.dilation[1];
          const bool inside = row >= 0 && row < g_.rows && column >= 0 && column < g_.columns;
          taps[tap] = inside ? image + ((n * g_.rows + row) * g_.columns + column) * g_.channels : call.outside;
        }
      }
      const DepthwisePosition position{taps, call.weights, pairs(), g_.channels, sums};
      (is_signed_image ? loops_.of_i8 : loops_.of_u8).depthwise(position);
      end_row({sums, call.added, nullptr, 0, g_.channels}, call.factors, *call.arguments,
              (line * g_.out_columns + x) * g_.channels);
    }
  }

  void end_row(const RowSums& row, const ChannelFactors& factors, const KernelArguments& arguments,
               int64_t element) const {
    if (result() == DType::i32) return loops_.store_sums(row, arguments.output<int32_t>(0) + element);
    const ByteLoops& bytes = result() == DType::i8 ? loops_.of_i8 : loops_.of_u8;
    (rule_.rounding == ops::RequantizeRounding::real ? bytes.requantize_real : bytes.requantize_fixed)(
        row, factors, arguments.output<uint8_t>(0) + element);
  }

  const NodeSignature node_;
  const IntegerImages g_;
  const int threads_;
  const RowLoops& loops_;
  ops::Requantization rule_;
  RunDepthwiseTile run_tile_ = nullptr;
};

/// Channels lie side by side: channels last, or one channel, or one pixel.
bool has_adjacent_channels(const TensorType& type) {
  if (type.layout == channels_last(4)) return true;
  return type.layout.is_plain() && (type.shape[1] == 1 || (type.shape[2] == 1 && type.shape[3] == 1));
}

}  // namespace

std::optional<IntegerImages> read_integer_images(const NodeSignature& node, std::string& why_not, bool takes_plain) {
  for (size_t operand = 0; operand < node.inputs.size(); ++operand)
    if (operand != 1 && operand != 0 && !node.inputs[operand].layout.is_plain()) {
      why_not = fmt::format("layout of operand {}", operand);
      return std::nullopt;
    }
  for (const TensorType* images : {&node.inputs[0], &node.outputs[0]}) {
    const bool may_be_plain = takes_plain && images == &node.inputs[0] && images->layout.is_plain();
    if (may_be_plain || has_adjacent_channels(*images)) continue;
    why_not = fmt::format("layout of {}", to_string(*images));
    return std::nullopt;
  }
  const Shape &in = node.inputs[0].shape, &weight = node.inputs[1].shape, &out = node.outputs[0].shape;
  return IntegerImages{in[0],  in[1],  in[2],     in[3],     out[1],
                       out[2], out[3], weight[2], weight[3], ops::integer_window(node.attributes)};
}

void add_integer_depthwise(KernelTable& table, const std::string& op, Isa isa) {
  table.add(op, {"native",
                 [isa](const NodeSignature& node, const KernelOptions& options,
                       std::string& why_not) -> std::unique_ptr<Kernel> {
                   auto images = read_integer_images(node, why_not);
                   if (!images) return nullptr;
                   if (!images->is_depthwise()) return declined(why_not, "it is not depthwise");
                   if (!node.inputs[1].layout.is_plain())
                     return declined(why_not, "layout of the weights " + to_string(node.inputs[1]));
                   if (images->kernel_rows * images->kernel_columns > kMostTaps)
                     return declined(why_not, "a kernel of many taps");
                   return std::make_unique<IntegerDepthwise>(node, *std::move(images), options.threads, isa);
                 }});
}

}  // namespace weft::native
