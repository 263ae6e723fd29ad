// resize, adaptive_avg_pool2d and their gradients. Each is a sparse matrix along the height times another along the
// width: every output row is a weighted sum of adjacent input rows, and every pixel of it one of adjacent columns.
#include "weft/ops/resample.h"

#include <fmt/format.h>

#include <vector>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/channel_view.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

/// The adjacent pixels of one axis that each output pixel is made of.
struct Taps {
  std::vector<int64_t> first, begin;  // of output i: first pixel, and its weights [begin[i], begin[i + 1])
  std::vector<float> weights;

  int64_t size() const { return static_cast<int64_t>(first.size()); }
  int64_t count(int64_t i) const { return begin[static_cast<size_t>(i) + 1] - begin[static_cast<size_t>(i)]; }
  const float* of(int64_t i) const { return weights.data() + begin[static_cast<size_t>(i)]; }
  /// Pixel i is made as the one before.
  bool repeats(int64_t i) const {
    const auto at = static_cast<size_t>(i);
    return i > 0 && first[at] == first[at - 1] && count(i) == count(i - 1) &&
           std::equal(of(i), of(i) + count(i), of(i - 1));
  }
};

template <typename T>
struct Loops {
  /// row[i] = sum over t of weights[t] * x[t * stride + i]
  void (*join_rows)(const T* x, int64_t stride, const float* weights, int64_t taps, float* row, int64_t count);
  /// The pixels, of `channels` adjacent numbers each, of one output row: from such a sum, or from an input row.
  void (*join_columns)(const float* row, const Taps& taps, int64_t channels, T* y);
  void (*join_input_columns)(const T* row, const Taps& taps, int64_t channels, T* y);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/window/resample_loops.h"
#define WEFT_LOOPS_PER_TYPE
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kGrain = 16384;  // numbers that are worth a thread

/// Sets visit(pixel, weight) for output pixel `at` of `outputs`, made of `inputs` pixels.
template <typename Visit>
void for_each_source(const std::string& rule, int64_t at, int64_t inputs, int64_t outputs, Visit&& visit) {
  if (rule == "nearest") {
    visit(ops::nearest_pixel(at, inputs, outputs), 1.0);
  } else if (rule == "bilinear") {
    const double scale = static_cast<double>(inputs) / static_cast<double>(outputs);
    const double position = std::max(0.0, (static_cast<double>(at) + 0.5) * scale - 0.5);
    const int64_t first = std::min(static_cast<int64_t>(position), inputs - 1);
    const double share = first + 1 < inputs ? position - static_cast<double>(first) : 0.0;
    visit(first, 1 - share);
    if (share > 0) visit(first + 1, share);
  } else {  // windows
    const int64_t begin = at * inputs / outputs, end = ((at + 1) * inputs + outputs - 1) / outputs;
    for (int64_t pixel = begin; pixel < end; ++pixel) visit(pixel, 1 / static_cast<double>(end - begin));
  }
}

Taps forward_taps(const std::string& rule, int64_t inputs, int64_t outputs) {
  Taps taps;
  taps.begin.push_back(0);
  for (int64_t at = 0; at < outputs; ++at) {
    int64_t first = -1;
    for_each_source(rule, at, inputs, outputs, [&](int64_t pixel, double weight) {
      if (first < 0) first = pixel;
      taps.weights.push_back(static_cast<float>(weight));
    });
    taps.first.push_back(first);
    taps.begin.push_back(static_cast<int64_t>(taps.weights.size()));
  }
  return taps;
}

/// The transposed matrix: for each of the `inputs` pixels the outputs that it is part of. They are adjacent too, since
/// all rules go from left to right; a pixel that no output uses has none.
Taps backward_taps(const std::string& rule, int64_t inputs, int64_t outputs) {
  std::vector<std::vector<float>> weights(static_cast<size_t>(inputs));
  Taps taps;
  taps.first.assign(static_cast<size_t>(inputs), 0);
  for (int64_t at = 0; at < outputs; ++at)
    for_each_source(rule, at, inputs, outputs, [&](int64_t pixel, double weight) {
      auto& list = weights[static_cast<size_t>(pixel)];
      if (list.empty()) taps.first[static_cast<size_t>(pixel)] = at;
      list.push_back(static_cast<float>(weight));
    });
  taps.begin.push_back(0);
  for (const auto& list : weights) {
    taps.weights.insert(taps.weights.end(), list.begin(), list.end());
    taps.begin.push_back(static_cast<int64_t>(taps.weights.size()));
  }
  return taps;
}

template <typename T>
class Resample : public Kernel {
 public:
  Resample(std::string name, Taps vertical, Taps horizontal, int64_t in_height, int64_t in_width, int64_t channels,
           int64_t planes, int threads, const Loops<T>& loops)
      : name_(std::move(name)),
        vertical_(std::move(vertical)),
        horizontal_(std::move(horizontal)),
        in_height_(in_height),
        in_row_(in_width * channels),
        out_row_(horizontal_.size() * channels),
        channels_(channels),
        rows_(planes * vertical_.size()),
        threads_(threads),
        parts_(static_cast<int>(std::clamp<int64_t>(rows_ * std::max(out_row_, in_row_) / kGrain, 1, threads))),
        loops_(loops) {}

  std::string name() const override { return name_; }
  int64_t workspace_bytes() const override { return parts_ * row_bytes(); }

  void run(const KernelArguments& arguments) override {
    parallel_run(threads_, parts_, [&](int thread, int total) {
      const auto [begin, end] = split_range(rows_, thread, total);
      auto* buffer = reinterpret_cast<float*>(static_cast<char*>(arguments.workspace) + thread * row_bytes());
      for (int64_t row = begin; row < end; ++row) {
        const int64_t plane = row / vertical_.size(), y = row % vertical_.size();
        T* out = arguments.output<T>(0) + row * out_row_;
        if (row > begin && vertical_.repeats(y)) {
          std::copy(out - out_row_, out, out);
          continue;
        }
        const T* in = arguments.input<T>(0) + (plane * in_height_ + vertical_.first[static_cast<size_t>(y)]) * in_row_;
        if (vertical_.count(y) == 1 && *vertical_.of(y) == 1.0f) {
          loops_.join_input_columns(in, horizontal_, channels_, out);
          continue;
        }
        loops_.join_rows(in, in_row_, vertical_.of(y), vertical_.count(y), buffer, in_row_);
        loops_.join_columns(buffer, horizontal_, channels_, out);
      }
    });
  }

 private:
  int64_t row_bytes() const { return align_up(in_row_ * 4); }

  const std::string name_;
  const Taps vertical_, horizontal_;
  const int64_t in_height_, in_row_, out_row_;  // a row in numbers: pixels times channels
  const int64_t channels_;                      // adjacent in memory
  const int64_t rows_;                          // of all output planes
  const int threads_, parts_;
  const Loops<T>& loops_;
};

std::unique_ptr<Kernel> make_resample(bool backward, Isa isa, const NodeSignature& node, const KernelOptions& options,
                                      std::string& why_not) {
  const TensorType &in = node.inputs[0], &out = node.outputs[0];
  if (in.dtype != out.dtype || !is_stored_type(in.dtype) || in.layout != out.layout)
    return declined(why_not,
                    fmt::format("{} and {} are not both f32 or bf16 in one layout", to_string(in), to_string(out)));
  const int64_t channels = adjacent_channels(in);
  if (channels == 0) return declined(why_not, "layout of " + to_string(in));
  if (in.elements() == 0) return declined(why_not, "the input is empty");
  const std::string rule = node.attributes.has("mode") ? node.attributes.text("mode") : "windows";
  const auto taps = [&](int axis) {
    return backward ? backward_taps(rule, out.shape[axis], in.shape[axis])
                    : forward_taps(rule, in.shape[axis], out.shape[axis]);
  };
  const int64_t planes = storage_elements(in.shape, in.layout) / (in.shape[2] * in.shape[3] * channels);
  return with_stored_type(in.dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return std::make_unique<Resample<T>>("native:" + node.op->name, taps(2), taps(3), in.shape[2], in.shape[3],
                                         channels, planes, options.threads, loops_for<T>(isa));
  });
}

}  // namespace

void add_resample(KernelTable& table, Isa isa) {
  for (const char* op : {"resize", "adaptive_avg_pool2d"})
    for (const bool backward : {false, true})
      table.add(
          std::string(op) + (backward ? "_backward" : ""),
          {"native", [backward, isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
             return make_resample(backward, isa, node, options, why_not);
           }});
}

}  // namespace weft::native
