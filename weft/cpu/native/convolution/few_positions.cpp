// fused_conv2d in f32 of few positions by many weights, as in the last layers of residual networks: there oneDNN's
// direct kernels read the weights from the third-level cache once for each row of the image. These read them once: 64
// columns of the weights, a row of the kernel at a time, meet all positions while they lie in the second-level cache.
//
// The image is copied once, channels side by side, with zeros around it: rows of the product lie in it as they are.
// Measured on AVX-512, one thread: 3x3 of 512 channels at 7x7 take 1.1 ms in place of 1.65.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "weft/base/parallel.h"
#include "weft/cpu/native/convolution/few_positions_tile.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

constexpr const char* kWeightsLayout =
    "ABcd16b16a";  // as oneDNN's kernels want them: plans for other batches share them
constexpr const char* kImageLayout = "aBcd16b";
constexpr int64_t kLanes = 16;
constexpr int64_t kMostPositions = 100;
constexpr int64_t kPiecesAtATime = 96;      // of 4 KB for a tile: 393 KB
constexpr int64_t kLeastWeights = 1 << 18;  // numbers: 1 MB

struct Geometry {
  Shape image, weight, output;
  std::vector<int64_t> stride, padding, dilation;

  explicit Geometry(const NodeSignature& node)
      : image(node.inputs[0].shape),
        weight(node.inputs[1].shape),
        output(node.outputs[0].shape),
        stride(node.attributes.integers("stride")),
        padding(node.attributes.integers("padding")),
        dilation(node.attributes.integers("dilation")) {}
  int64_t rows() const { return image[2] + 2 * padding[0]; }
  int64_t columns() const { return image[3] + 2 * padding[1]; }
  int64_t positions() const { return output[0] * output[2] * output[3]; }
  int64_t tiles() const { return output[1] / kPositionColumns; }
  int64_t copied_floats() const { return image[0] * rows() * columns() * image[1]; }
};

/// Whether such a kernel is the faster one.
bool fits(const NodeSignature& node, Isa isa) {
  if (isa != Isa::avx512 || position_loops() == nullptr || node.attributes.integer("groups") != 1) return false;
  for (const TensorType& type : node.inputs)
    if (type.dtype != DType::f32) return false;
  const Geometry g(node);
  return g.weight[2] * g.weight[3] > 1 && g.dilation[1] == 1 && g.image[1] % kLanes == 0 &&
         g.output[1] % kPositionColumns == 0 && g.positions() > 0 && g.positions() <= kMostPositions &&
         g.weight.elements() >= kLeastWeights;
}

class FewPositions : public Kernel {
 public:
  FewPositions(const NodeSignature& node, int threads)
      : g_(node),
        has_residual_(node.inputs.size() > 3),
        activation_(node.attributes.text("activation")),
        threads_(threads),
        loops_(*position_loops()) {
    for (int64_t block = 0; block < g_.image[1] / kLanes; ++block)
      for (int64_t i = 0; i < g_.weight[2]; ++i)
        for (int64_t j = 0; j < g_.weight[3]; ++j)
          pieces_.push_back((i * g_.dilation[0] * g_.columns() + j) * g_.image[1] + block * kLanes);
  }
  std::string name() const override { return "native:few_positions"; }
  int64_t workspace_bytes() const override { return align_up(g_.copied_floats() * 4) + threads_ * sums_bytes(); }

  void run(const KernelArguments& arguments) override {
    auto* const copied = static_cast<float*>(arguments.workspace);
    copy(arguments.input(0), copied);
    parallel_run(threads_, static_cast<int>(std::min<int64_t>(threads_, g_.tiles())), [&](int part, int parts) {
      const auto [first, last] = split_range(g_.tiles(), part, parts);
      auto* const sums = reinterpret_cast<float*>(static_cast<std::byte*>(arguments.workspace) +
                                                  align_up(g_.copied_floats() * 4) + part * sums_bytes());
      for (int64_t tile = first; tile < last; ++tile) run_tile(arguments, copied, tile, sums);
    });
  }

 private:
  int64_t sums_bytes() const { return align_up(g_.positions() * kPositionColumns * 4); }

  void copy(const float* image, float* to) const {
    const int64_t blocks = g_.image[1] / kLanes, lines = g_.image[0] * g_.rows();
    parallel_for(threads_, lines, 4, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        float* const row = to + line * g_.columns() * g_.image[1];
        std::memset(row, 0, static_cast<size_t>(g_.columns() * g_.image[1] * 4));
        const int64_t n = line / g_.rows(), y = line % g_.rows() - g_.padding[0];
        if (y < 0 || y >= g_.image[2]) continue;
        for (int64_t block = 0; block < blocks; ++block) {
          const float* const from = image + ((n * blocks + block) * g_.image[2] + y) * g_.image[3] * kLanes;
          for (int64_t x = 0; x < g_.image[3]; ++x)
            std::memcpy(row + (x + g_.padding[1]) * g_.image[1] + block * kLanes, from + x * kLanes, kLanes * 4);
        }
      }
    });
  }

  /// In the copied image, for the first row of the kernel.
  void find_rows(const float* copied, int64_t first, int64_t count, const float** rows) const {
    for (int64_t at = 0; at < count; ++at) {
      const int64_t position = first + at, x = position % g_.output[3], y = position / g_.output[3] % g_.output[2],
                    n = position / (g_.output[3] * g_.output[2]);
      rows[at] = copied + ((n * g_.rows() + y * g_.stride[0]) * g_.columns() + x * g_.stride[1]) * g_.image[1];
    }
  }

  void run_tile(const KernelArguments& arguments, const float* copied, int64_t tile, float* sums) const {
    const auto count = static_cast<int64_t>(pieces_.size()), inner = count * kLanes;
    const float* const columns = arguments.input(1) + tile * kPositionColumns * inner;
    for (int64_t piece = 0; piece < count; piece += kPiecesAtATime)
      for (int64_t first = 0; first < g_.positions(); first += kPositionRows) {
        const int64_t row_count = std::min(kPositionRows, g_.positions() - first);
        const float* rows[kPositionRows];
        find_rows(copied, first, row_count, rows);
        loops_.multiply({rows, row_count, pieces_.data() + piece, std::min(kPiecesAtATime, count - piece),
                         columns + piece * kLanes * kLanes, inner * kLanes, sums + first * kPositionColumns,
                         piece > 0});
      }
    finish(arguments, tile, sums);
  }

  void finish(const KernelArguments& arguments, int64_t tile, const float* sums) const {
    const int64_t plane = g_.output[2] * g_.output[3], blocks = g_.output[1] / kLanes;
    const float most = activation_ == "relu6" ? 6.0f : std::numeric_limits<float>::infinity();
    for (int64_t position = 0; position < g_.positions(); ++position) {
      const int64_t block = tile * (kPositionColumns / kLanes);
      const int64_t at = ((position / plane * blocks + block) * plane + position % plane) * kLanes;
      loops_.finish({sums + position * kPositionColumns, arguments.input(2) + tile * kPositionColumns,
                     has_residual_ ? arguments.input(3) + at : nullptr, arguments.output(0) + at, plane * kLanes, most,
                     activation_ != "none"});
    }
  }

  const Geometry g_;
  const bool has_residual_;
  const std::string activation_;
  const int threads_;
  const PositionLoops& loops_;
  std::vector<int64_t> pieces_;  // of what a window sees, in the order of the weights
};

std::optional<LayoutChoice> wanted_layouts(const NodeSignature& node, Isa isa) {
  if (!fits(node, isa)) return std::nullopt;
  const Layout images = parse_layout(kImageLayout, 4);
  LayoutChoice choice{{images, parse_layout(kWeightsLayout, 4), {}}, {images}};
  if (node.inputs.size() > 3) choice.inputs.push_back(images);
  return choice;
}

}  // namespace

void add_few_positions(KernelTable& table, Isa isa) {
  table.add(
      "fused_conv2d",
      {"native",
       [isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) -> std::unique_ptr<Kernel> {
         const auto wanted = wanted_layouts(node, isa);
         if (!wanted) return declined(why_not, "many positions, few weights, or no AVX-512");
         for (size_t input = 0; input < node.inputs.size(); ++input)
           if (node.inputs[input].layout != wanted->inputs[input])
             return declined(why_not, "layout of " + to_string(node.inputs[input]));
         if (node.outputs[0].layout != wanted->outputs[0]) return declined(why_not, "the result's layout");
         return std::make_unique<FewPositions>(node, options.threads);
       },
       [isa](const NodeSignature& node, const KernelOptions&) { return wanted_layouts(node, isa); }});
}

}  // namespace weft::native
