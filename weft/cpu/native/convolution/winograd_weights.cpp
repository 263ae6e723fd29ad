// conv2d_backward_weights of 3x3 on bf16 by Winograd's minimal filtering: the transpose of the forward convolution in
// winograd.cpp. Transformed tiles of the inputs are multiplied with transformed tiles of the outputs' gradient, which
// sums up the gradient of the transformed weights over all tiles of all images; the filters come out of that at the
// end.
//
// Each part of the images has sums of its own, which are added up in order: the result depends on the number of threads
// alone.
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

constexpr int64_t kTileBytes = 700 << 10;     // of transformed tiles that lie in memory at a time
constexpr int64_t kMostSumBytes = 256 << 20;  // of all parts

class WinogradWeights : public Kernel {
 public:
  WinogradWeights(const NodeSignature& node, int threads)
      : inputs_(node.inputs[0]),
        gradients_(node.inputs[1]),
        weights_(node.outputs[0]),
        padding_{tile_padding(node, 0), tile_padding(node, 1)},
        tiling_(gradients_.shape),
        has_bias_(node.outputs.size() > 1),
        threads_(threads),
        parts_(static_cast<int>(std::min<int64_t>(threads, pairs_of(tiling_.tiles())))),
        input_channels_(padded_channels(inputs_.shape)),
        output_channels_(padded_channels(gradients_.shape)),
        weight_offsets_(axis_offsets(weights_.shape, weights_.layout)) {
    const int64_t pair_bytes = kMatrices * (input_channels_ + output_channels_) * 2 * 2;
    pairs_ =
        std::min(std::max<int64_t>(kTileBytes / pair_bytes, 32), (pairs_of(tiling_.tiles()) + parts_ - 1) / parts_);
  }
  std::string name() const override { return "native:winograd"; }
  int64_t workspace_bytes() const override { return parts_ * part_bytes(); }
  int64_t sum_bytes() const { return parts_ * kMatrices * matrix() * 4; }

  void run(const KernelArguments& a) override {
    parallel_run(threads_, parts_, [&](int part, int count) {
      // A team may be smaller than asked for: the split into parts decides the order of the sums.
      const auto [first, last] = split_range(parts_, part, count);
      for (int64_t at = first; at < last; ++at) add_part(a, static_cast<int>(at));
    });
    std::memset(a.outputs[0], 0, static_cast<size_t>(weights_.bytes()));
    const int64_t blocks = output_channels_ / kLanes;
    parallel_for(threads_, blocks * inputs_.shape[1], 64, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) write(a, at % blocks, at / blocks);
    });
    if (has_bias_)
      for (int64_t c = 0; c < gradients_.shape[1]; ++c) {
        float sum = 0;
        for (int part = 0; part < parts_; ++part) sum += memory_of(a, part).bias[c];
        a.output(1)[c] = sum;
      }
  }

 private:
  struct Memory {
    float* sums;          // [16][panels][blocks of inputs][16][outputs of the panel]
    float* bias;          // sums of the gradients
    uint16_t* inputs;     // transformed: [16][blocks][pairs][16][2]
    uint16_t* gradients;  // [16][panels][pairs][outputs of the panel][2]
  };
  static int64_t pairs_of(int64_t tiles) { return (tiles + 1) / 2; }
  int64_t matrix() const { return input_channels_ * output_channels_; }
  int64_t input_matrix() const { return pairs_ * input_channels_ * 2 + kApart; }
  int64_t gradient_matrix() const { return pairs_ * output_channels_ * 2 + kApart; }
  int64_t part_bytes() const {
    return kMatrices * (matrix() * 4 + (input_matrix() + gradient_matrix()) * 2) + align_up(output_channels_ * 4);
  }
  Memory memory_of(const KernelArguments& a, int part) const {
    float* sums = reinterpret_cast<float*>(static_cast<char*>(a.workspace) + part * part_bytes());
    float* bias = sums + kMatrices * matrix();
    uint16_t* inputs = reinterpret_cast<uint16_t*>(reinterpret_cast<char*>(bias) + align_up(output_channels_ * 4));
    return {sums, bias, inputs, inputs + kMatrices * input_matrix()};
  }

  void add_part(const KernelArguments& a, int part) const {
    const Memory memory = memory_of(a, part);
    std::fill(memory.sums, memory.sums + kMatrices * matrix(), 0.0f);
    std::fill(memory.bias, memory.bias + output_channels_, 0.0f);
    const auto [first, last] = split_range(pairs_of(tiling_.tiles()), part, parts_);
    for (int64_t at = first; at < last; at += pairs_)
      add_tiles(a, memory, at * 2, std::min(std::min(at + pairs_, last) * 2, tiling_.tiles()));
  }

  void add_tiles(const KernelArguments& a, const Memory& memory, int64_t first, int64_t last) const {
    const Planes in(inputs_.shape), out(gradients_.shape);
    const int64_t pairs = pairs_of(last - first);
    tiling_.for_strips(first, last, [&](const TileStrip& s) {
      const Strip input{in.rows, in.columns, s.row * 2 - padding_[0], s.column * 2 - padding_[1], s.tiles};
      for (int64_t block = 0; block < in.blocks; ++block)
        transform_input_pairs(
            a.input<uint16_t>(0) + in.offset(s.image, block), input,
            {memory.inputs + block * pairs_ * kLanes * 2, input_matrix(), kLanes * 2, s.first - first});
      const Strip gradient{out.rows, out.columns, s.row * 2, s.column * 2, s.tiles};
      for (int64_t block = 0; block < out.blocks; ++block) {
        const int64_t panel = block / kWide * kWide, wide = std::min(kWide, out.blocks - panel);
        uint16_t* to = memory.gradients + (panel * pairs_ + block - panel) * kLanes * 2;
        transform_gradient_pairs(a.input<uint16_t>(1) + out.offset(s.image, block), gradient,
                                 {to, gradient_matrix(), wide * kLanes * 2, s.first - first},
                                 memory.bias + block * kLanes);
      }
    });
    for (int64_t m = 0; m < kMatrices; ++m)
      for (int64_t panel = 0; panel < out.blocks; panel += kWide) {
        const int64_t wide = std::min(kWide, out.blocks - panel);
        for (int64_t block = 0; block < in.blocks; ++block)
          add_products(wide, pairs, memory.inputs + m * input_matrix() + block * pairs_ * kLanes * 2,
                       memory.gradients + m * gradient_matrix() + panel * pairs_ * kLanes * 2,
                       memory.sums + m * matrix() + panel * kLanes * input_channels_ + block * kLanes * wide * kLanes);
      }
  }

  /// The filters of one input and a block of outputs, from the sums of all parts.
  void write(const KernelArguments& a, int64_t block, int64_t input) const {
    const int64_t panel = block / kWide * kWide, wide = std::min(kWide, output_channels_ / kLanes - panel);
    const int64_t place = panel * kLanes * input_channels_ + (input * wide + block - panel) * kLanes;
    alignas(64) float total[kMatrices * kLanes], taps[9 * kLanes];
    for (int64_t m = 0; m < kMatrices; ++m)
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        float sum = memory_of(a, 0).sums[m * matrix() + place + lane];
        for (int part = 1; part < parts_; ++part) sum += memory_of(a, part).sums[m * matrix() + place + lane];
        total[m * kLanes + lane] = sum;
      }
    inverse_filters(total, kLanes, taps);
    const int64_t outputs = std::min(kLanes, weights_.shape[0] - block * kLanes);
    for (int64_t tap = 0; tap < 9; ++tap) {
      float* to = a.output(0) + offset(1, input) + offset(2, tap / 3) + offset(3, tap % 3);
      for (int64_t lane = 0; lane < outputs; ++lane) to[offset(0, block * kLanes + lane)] = taps[tap * kLanes + lane];
    }
  }
  int64_t offset(size_t axis, int64_t index) const { return weight_offsets_[axis][static_cast<size_t>(index)]; }

  const TensorType inputs_, gradients_, weights_;
  const int64_t padding_[2];
  const Tiling tiling_;
  const bool has_bias_;
  const int threads_, parts_;
  const int64_t input_channels_, output_channels_;
  const std::vector<std::vector<int64_t>> weight_offsets_;
  int64_t pairs_;  // of tiles, transformed at a time
};

std::unique_ptr<Kernel> make_winograd_weights(const NodeSignature& node, int threads, Isa isa, std::string& why_not) {
  std::string reason = why_no_winograd(node, isa, node.outputs[0].shape, node.inputs[0], node.inputs[1]);
  if (!reason.empty()) return declined(why_not, std::move(reason));
  if (node.outputs[0].dtype != DType::f32) return declined(why_not, "winograd sums weights' gradients in f32");
  auto kernel = std::make_unique<WinogradWeights>(node, threads);
  if (kernel->sum_bytes() > kMostSumBytes) return declined(why_not, "winograd's sums of all threads are too large");
  return kernel;
}

}  // namespace

void add_winograd_weights(KernelTable& table, Isa isa) {
  table.add("conv2d_backward_weights",
            {"native", [isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
               return make_winograd_weights(node, options.threads, isa, why_not);
             }});
}

#else

void add_winograd_weights(KernelTable&, Isa) {}

#endif

}  // namespace weft::native
