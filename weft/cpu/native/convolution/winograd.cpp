// conv2d and conv2d_backward_data of 3x3 on bf16 by Winograd's minimal filtering F(2x2, 3x3): 16 products for four
// results of a channel in place of 36, on the same instructions that oneDNN's direct convolutions use up.
//
// The weights are transformed once a call. Then each thread takes tiles of the images in blocks whose transformed
// numbers stay in the second-level cache: transform the inputs, multiply, transform the products, panel by panel of
// outputs. The gradient of the input is the same convolution with filters turned round and channels exchanged.
#include <cstring>
#include <vector>

#include "weft/base/parallel.h"
#include "weft/cpu/native/convolution/winograd_loops.h"
#include "weft/cpu/native/convolution/winograd_shape.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

#if defined(WEFT_WINOGRAD)

namespace {

using namespace winograd;

constexpr int64_t kCacheBytes = 640 << 10;  // of the second-level cache of 1 MiB, for one block of tiles
constexpr int64_t kFewestRowBlocks = 3;     // even so: each block reads all weights

class Winograd : public Kernel {
 public:
  Winograd(const NodeSignature& node, int threads)
      : backward_(node.op->name == "conv2d_backward_data"),
        inputs_(node.inputs[0]),
        outputs_(node.outputs[0]),
        padding_{tile_padding(node, 0), tile_padding(node, 1)},
        tiling_(outputs_.shape),
        has_bias_(node.inputs.size() > 2),
        threads_(threads),
        input_channels_(padded_channels(inputs_.shape)),
        output_channels_(padded_channels(outputs_.shape)),
        weight_offsets_(axis_offsets(node.inputs[1].shape, node.inputs[1].layout)) {
    const int64_t tile_bytes = kMatrices * (input_channels_ * 2 + std::min(output_channels_, kWide * kLanes) * 4);
    const int64_t row_blocks = (tiling_.tiles() + kRows - 1) / kRows;
    row_blocks_ =
        std::min(std::max(kCacheBytes / (tile_bytes * kRows), kFewestRowBlocks), (row_blocks + threads - 1) / threads);
  }
  std::string name() const override { return "native:winograd"; }
  int64_t workspace_bytes() const override {
    return weight_bytes() + align_up(output_channels_ * 4) + threads_ * part_bytes();
  }

  void run(const KernelArguments& a) override {
    const Parts parts = parts_of(a);
    transform_weights(a.input<uint16_t>(1), parts.weights);
    std::fill(parts.bias, parts.bias + output_channels_, 0.0f);
    if (has_bias_) std::copy(a.input(2), a.input(2) + outputs_.shape[1], parts.bias);
    const int64_t row_blocks = (tiling_.tiles() + kRows - 1) / kRows;
    parallel_run(threads_, threads_, [&](int part, int count) {
      const auto [first, last] = split_range(row_blocks, part, count);
      for (int64_t at = first; at < last; at += row_blocks_)
        convolve(a, parts, part, at * kRows, std::min(std::min(at + row_blocks_, last) * kRows, tiling_.tiles()));
    });
  }

 private:
  struct Parts {
    uint16_t* weights;  // [16][panels][input channels / 2][outputs of the panel][2]
    float* bias;
    char* rest;
  };
  int64_t weight_matrix() const { return input_channels_ * output_channels_; }
  int64_t weight_bytes() const { return kMatrices * weight_matrix() * 2; }
  int64_t tile_matrix() const { return row_blocks_ * kRows * input_channels_ + kApart; }
  int64_t tile_bytes() const { return align_up(kMatrices * tile_matrix() * 2); }
  int64_t part_bytes() const {
    return tile_bytes() + kMatrices * row_blocks_ * kRows * std::min(output_channels_, kWide * kLanes) * 4;
  }
  Parts parts_of(const KernelArguments& a) const {
    char* at = static_cast<char*>(a.workspace);
    char* bias = at + weight_bytes();
    return {reinterpret_cast<uint16_t*>(at), reinterpret_cast<float*>(bias), bias + align_up(output_channels_ * 4)};
  }

  void transform_weights(const uint16_t* weights, uint16_t* result) const {
    const int64_t pairs = input_channels_ / 2, blocks = output_channels_ / kLanes;
    parallel_for(threads_, pairs * blocks, 64, [&](int64_t begin, int64_t end) {
      alignas(64) uint16_t taps[9 * kLanes * 2];
      for (int64_t at = begin; at < end; ++at) {
        const int64_t block = at / pairs, pair = at % pairs, panel = block / kWide;
        const int64_t wide = std::min(kWide, blocks - panel * kWide);
        collect_taps(weights, block, pair, taps);
        transform_filters(
            taps, result + panel * kWide * kLanes * input_channels_ + (pair * wide + block % kWide) * kLanes * 2,
            weight_matrix());
      }
    });
  }

  /// [9][16 outputs][2 inputs] of one block of outputs and one pair of inputs; zeros for channels that are padding.
  void collect_taps(const uint16_t* weights, int64_t block, int64_t pair, uint16_t* taps) const {
    const auto& outputs = weight_offsets_[backward_ ? 1 : 0];
    const auto& inputs = weight_offsets_[backward_ ? 0 : 1];
    const size_t first = static_cast<size_t>(block * kLanes), input = static_cast<size_t>(pair * 2);
    const bool full = first + kLanes <= outputs.size() && input + 2 <= inputs.size();
    bool dense = full && inputs[input + 1] == inputs[input] + 1;
    for (size_t lane = 1; dense && lane < kLanes; ++lane)
      dense = outputs[first + lane] == outputs[first] + 2 * static_cast<int64_t>(lane);
    if (!full) std::memset(taps, 0, 9 * kLanes * 2 * 2);
    for (size_t tap = 0; tap < 9; ++tap) {
      const size_t from = backward_ ? 8 - tap : tap;
      const uint16_t* weight = weights + weight_offsets_[2][from / 3] + weight_offsets_[3][from % 3];
      uint16_t* to = taps + tap * kLanes * 2;
      if (dense) {
        std::memcpy(to, weight + outputs[first] + inputs[input], kLanes * 2 * 2);
        continue;
      }
      for (size_t lane = 0; lane < kLanes && first + lane < outputs.size(); ++lane)
        for (size_t i = 0; i < 2 && input + i < inputs.size(); ++i)
          to[lane * 2 + i] = weight[outputs[first + lane] + inputs[input + i]];
    }
  }

  void convolve(const KernelArguments& a, const Parts& parts, int part, int64_t first, int64_t last) const {
    uint16_t* tiles = reinterpret_cast<uint16_t*>(parts.rest + part * part_bytes());
    float* products = reinterpret_cast<float*>(parts.rest + part * part_bytes() + tile_bytes());
    const Planes in(inputs_.shape), out(outputs_.shape);
    tiling_.for_strips(first, last, [&](const TileStrip& s) {
      const Strip strip{in.rows, in.columns, s.row * 2 - padding_[0], s.column * 2 - padding_[1], s.tiles};
      uint16_t* to = tiles + (s.first - first) * input_channels_;
      for (int64_t block = 0; block < in.blocks; ++block)
        transform_input(a.input<uint16_t>(0) + in.offset(s.image, block), strip,
                        {to + block * kLanes, tile_matrix(), input_channels_});
    });
    const int64_t row_blocks = (last - first + kRows - 1) / kRows;
    for (int64_t block = 0; block < out.blocks; block += kWide) {
      const int64_t wide = std::min(kWide, out.blocks - block), width = wide * kLanes, matrix = kRows * width;
      for (int64_t m = 0; m < kMatrices; ++m)
        for (int64_t rows = 0; rows < row_blocks; ++rows)
          multiply(wide, input_channels_, tiles + m * tile_matrix() + rows * kRows * input_channels_,
                   parts.weights + m * weight_matrix() + block * kLanes * input_channels_,
                   products + (rows * kMatrices + m) * matrix);
      tiling_.for_strips(first, last, [&](const TileStrip& s) {
        for (int64_t tile = 0; tile < s.tiles; ++tile) {
          const int64_t at = s.first - first + tile;
          const float* from = products + at / kRows * kMatrices * matrix + at % kRows * width;
          const Strip strip{out.rows, out.columns, s.row * 2, (s.column + tile) * 2, 1};
          for (int64_t b = 0; b < wide; ++b)
            transform_output(from + b * kLanes, matrix, parts.bias + (block + b) * kLanes,
                             a.output<uint16_t>(0) + out.offset(s.image, block + b), strip);
        }
      });
    }
  }

  const bool backward_;
  const TensorType inputs_, outputs_;
  const int64_t padding_[2];
  const Tiling tiling_;
  const bool has_bias_;
  const int threads_;
  const int64_t input_channels_, output_channels_;
  const std::vector<std::vector<int64_t>> weight_offsets_;
  int64_t row_blocks_;  // of kRows tiles each, in one block
};

std::unique_ptr<Kernel> make_winograd(const NodeSignature& node, int threads, Isa isa, std::string& why_not) {
  std::string reason = why_no_winograd(node, isa, node.inputs[1].shape, node.inputs[0], node.outputs[0]);
  if (!reason.empty()) return declined(why_not, std::move(reason));
  return std::make_unique<Winograd>(node, threads);
}

}  // namespace

void add_winograd(KernelTable& table, Isa isa) {
  for (const char* op : {"conv2d", "conv2d_backward_data"})
    table.add(op, {"native", [isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
                     return make_winograd(node, options.threads, isa, why_not);
                   }});
}

#else

void add_winograd(KernelTable&, Isa) {}

#endif

}  // namespace weft::native
