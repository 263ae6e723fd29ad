// quantize_linear, dequantize_linear, requantize, quantized_affine and quantized_add. A factor for all numbers: in any
// layout that operand and result share, one sweep. A factor per channel: where channels lie side by side, row by row;
// where each channel's numbers do, run by run.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "weft/base/parallel.h"
#include "weft/cpu/native/integer/row_ends.h"
#include "weft/cpu/native/support/families.h"
#include "weft/ops/integer/quantized.h"

namespace weft::native {

namespace {

constexpr int64_t kGrain = 16384;  // numbers below which a second thread costs more than it brings
constexpr int64_t kRun = 4096;     // numbers at a time

ops::IntegerRange range_of_type(DType dtype) {
  return dtype == DType::i8 ? ops::IntegerRange{-128, 127} : ops::IntegerRange{0, 255};
}

/// Memory as outer * channels * inner numbers; one channel where all numbers share a factor.
struct ChannelRuns {
  int64_t outer = 1, channels = 1, inner = 1;
};

/// nullopt where the layout has the channels otherwise.
std::optional<ChannelRuns> runs_of(const NodeSignature& node, bool per_channel) {
  const TensorType &from = node.inputs[0], &to = node.outputs[0];
  if (from.layout != to.layout) return std::nullopt;
  if (!per_channel) return ChannelRuns{1, 1, storage_elements(from.shape, from.layout)};
  const int64_t rank = from.shape.rank(), axis = node.attributes.integer("axis");
  const auto at = static_cast<int>(axis < 0 ? axis + rank : axis);
  ChannelRuns runs;
  runs.channels = from.shape[at];
  if (from.layout == channels_last(4) && rank == 4 && at == 1) {
    runs.outer = from.shape[0] * from.shape[2] * from.shape[3];
    return runs;
  }
  if (!from.layout.is_plain()) return std::nullopt;
  for (int before = 0; before < at; ++before) runs.outer *= from.shape[before];
  for (int behind = at + 1; behind < from.shape.rank(); ++behind) runs.inner *= from.shape[behind];
  return runs;
}

/// Calls body(first element, first channel, count, is per channel) over all numbers: runs of one channel's numbers, or
/// of channels side by side.
template <typename Body>
void for_each_run(const ChannelRuns& runs, int threads, Body&& body) {
  if (runs.inner == 1 && runs.channels > 1) {
    parallel_for(threads, runs.outer, std::max<int64_t>(1, kGrain / runs.channels), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) body(row * runs.channels, 0, runs.channels, true);
    });
    return;
  }
  const int64_t pieces = (runs.inner + kRun - 1) / kRun, all = runs.outer * runs.channels * pieces;
  parallel_for(threads, all, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, std::min(kRun, runs.inner))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t piece = begin; piece < end; ++piece) {
                   const int64_t run = piece / pieces, first = piece % pieces * kRun;
                   body(run * runs.inner + first, run % runs.channels, std::min(kRun, runs.inner - first), false);
                 }
               });
}

/// Scales or zero points of i32 in the workspace: as many as there are channels.
void widen(DType dtype, const void* from, int64_t count, int32_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = byte_of(dtype, from, i);
}

class QuantizeRuns : public Kernel {
 public:
  QuantizeRuns(const NodeSignature& node, const ChannelRuns& runs, int threads, Isa isa)
      : name_("native:" + node.op->name),
        quantizes_(node.op->name == "quantize_linear"),
        dtype_(quantizes_ ? node.outputs[0].dtype : node.inputs[0].dtype),
        runs_(runs),
        threads_(threads),
        loops_(dtype_ == DType::i8 ? row_loops_for(isa).of_i8 : row_loops_for(isa).of_u8) {}
  std::string name() const override { return name_; }
  int64_t workspace_bytes() const override { return align_up(runs_.channels * 4); }

  void run(const KernelArguments& a) override {
    auto* const zeros = static_cast<int32_t*>(a.workspace);
    widen(dtype_, a.inputs[2], runs_.channels, zeros);
    const float* const scales = a.input(1);
    for_each_run(runs_, threads_, [&](int64_t element, int64_t channel, int64_t count, bool per_channel) {
      if (quantizes_)
        loops_.quantize(
            {a.input(0) + element, scales + channel, zeros + channel, per_channel, range_of_type(dtype_), count},
            a.output<uint8_t>(0) + element);
      else
        loops_.dequantize({scales + channel, zeros + channel, per_channel, count}, a.input<uint8_t>(0) + element,
                          a.output(0) + element);
    });
  }

 private:
  const std::string name_;
  const bool quantizes_;
  const DType dtype_;  // of the integers
  const ChannelRuns runs_;
  const int threads_;
  const ByteLoops& loops_;
};

/// Sums whose channels have factors of their own, or share one: both as runs of at most kRun numbers with arrays.
class RequantizeRuns : public Kernel {
 public:
  RequantizeRuns(const NodeSignature& node, const ChannelRuns& runs, int threads, Isa isa)
      : runs_(runs),
        dtype_(node.outputs[0].dtype),
        factor_per_channel_(node.inputs[1].shape.rank() == 1),
        has_bias_(node.inputs.size() > 3),
        bias_per_channel_(has_bias_ && node.inputs[3].shape.rank() == 1),
        rule_(ops::requantization_of(node.attributes, dtype_)),
        threads_(threads),
        loops_(dtype_ == DType::i8 ? row_loops_for(isa).of_i8 : row_loops_for(isa).of_u8) {}
  std::string name() const override { return "native:requantize"; }
  /// Arrays of channels side by side, or of a run that repeats one number, for each thread's share of channels alike.
  int64_t workspace_bytes() const override { return 4 * array_bytes() * (side_by_side() ? 1 : runs_.channels); }

  void run(const KernelArguments& a) override {
    const int64_t sets = side_by_side() ? 1 : runs_.channels;
    for (int64_t set = 0; set < sets; ++set) fill(a, set);
    const int32_t zero = byte_of(dtype_, a.inputs[2], 0);
    for_each_run(runs_, threads_, [&](int64_t element, int64_t channel, int64_t count, bool) {
      const ChannelFactors factors{array<float>(a, channel, 0), array<int32_t>(a, channel, 1),
                                   array<int32_t>(a, channel, 2), zero, rule_.range};
      const RowSums sums{a.input<int32_t>(0) + element, has_bias_ ? array<int32_t>(a, channel, 3) : nullptr, nullptr, 0,
                         count};
      (rule_.rounding == ops::RequantizeRounding::real ? loops_.requantize_real : loops_.requantize_fixed)(
          sums, factors, a.output<uint8_t>(0) + element);
    });
  }

 private:
  bool side_by_side() const { return runs_.inner == 1 && runs_.channels > 1; }
  int64_t length() const { return side_by_side() ? runs_.channels : std::min(kRun, runs_.inner); }
  int64_t array_bytes() const { return align_up(length() * 4); }
  template <typename T>
  T* array(const KernelArguments& a, int64_t set, int64_t which) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(a.workspace) + (4 * set + which) * array_bytes());
  }

  void fill(const KernelArguments& a, int64_t set) const {
    for (int64_t i = 0; i < length(); ++i) {
      const int64_t channel = side_by_side() ? i : set;
      const float factor = a.input(1)[factor_per_channel_ ? channel : 0];
      const ops::FixedFactor fixed = ops::fixed_factor(factor, rule_.multiplier_bits);
      array<float>(a, set, 0)[i] = factor;
      array<int32_t>(a, set, 1)[i] = static_cast<int32_t>(fixed.multiplier);
      array<int32_t>(a, set, 2)[i] = fixed.shift;
      if (has_bias_) array<int32_t>(a, set, 3)[i] = a.input<int32_t>(3)[bias_per_channel_ ? channel : 0];
    }
  }

  const ChannelRuns runs_;
  const DType dtype_;
  const bool factor_per_channel_, has_bias_, bias_per_channel_;
  const ops::Requantization rule_;
  const int threads_;
  const ByteLoops& loops_;
};

class AffineRuns : public Kernel {
 public:
  AffineRuns(const NodeSignature& node, const ChannelRuns& runs, int threads, Isa isa)
      : runs_(runs),
        result_(node.outputs[0].dtype),
        range_(ops::range_of(node.attributes, result_)),
        threads_(threads),
        affine_(row_loops_for(isa).affine[result_ == DType::u8]) {}
  std::string name() const override { return "native:quantized_affine"; }

  void run(const KernelArguments& a) override {
    const int32_t zero = byte_of(result_, a.inputs[3], 0);
    for_each_run(runs_, threads_, [&](int64_t element, int64_t channel, int64_t count, bool per_channel) {
      affine_({a.input(1) + channel, a.input(2) + channel, per_channel, zero, range_, count},
              a.input<uint8_t>(0) + element, a.output<uint8_t>(0) + element);
    });
  }

 private:
  const ChannelRuns runs_;
  const DType result_;
  const ops::IntegerRange range_;
  const int threads_;
  void (*const affine_)(const AffineRun&, const void*, void*);
};

class QuantizedAdd : public Kernel {
 public:
  QuantizedAdd(const NodeSignature& node, int threads, Isa isa)
      : a_(node.inputs[0].dtype),
        b_(node.inputs[1].dtype),
        result_(node.outputs[0].dtype),
        range_(ops::range_of(node.attributes, result_)),
        count_(storage_elements(node.outputs[0].shape, node.outputs[0].layout)),
        threads_(threads),
        add_(row_loops_for(isa).add[a_ == DType::u8][b_ == DType::u8][result_ == DType::u8]) {}
  std::string name() const override { return "native:quantized_add"; }

  void run(const KernelArguments& a) override {
    AddRun whole{*a.input(2),
                 *a.input(4),
                 *a.input(6),
                 byte_of(a_, a.inputs[3], 0),
                 byte_of(b_, a.inputs[5], 0),
                 byte_of(result_, a.inputs[7], 0),
                 range_,
                 0};
    parallel_for(threads_, count_, kGrain, [&](int64_t begin, int64_t end) {
      AddRun run = whole;
      run.count = end - begin;
      add_(run, a.input<uint8_t>(0) + begin, a.input<uint8_t>(1) + begin, a.output<uint8_t>(0) + begin);
    });
  }

 private:
  const DType a_, b_, result_;
  const ops::IntegerRange range_;
  const int64_t count_;
  const int threads_;
  void (*const add_)(const AddRun&, const void*, const void*, void*);
};

/// What fills up blocks must be 0, which a zero point is not: such layouts are declined.
bool is_full(const TensorType& type) { return storage_elements(type.shape, type.layout) == type.elements(); }

std::unique_ptr<Kernel> make_runs(const NodeSignature& node, const KernelOptions& options, Isa isa,
                                  std::string& why_not) {
  const bool is_dequantize = node.op->name == "dequantize_linear";
  if (is_dequantize && (is_packed(node.inputs[0].dtype) || node.attributes.integer("group") > 0))
    return declined(why_not, "integers of fewer than 8 bits, or in groups");
  bool per_channel = node.inputs[1].shape.rank() == 1;
  for (size_t operand = 1; operand < node.inputs.size(); ++operand) {
    if (!node.inputs[operand].layout.is_plain()) return declined(why_not, "factors are not plain");
    per_channel = per_channel || node.inputs[operand].shape.rank() == 1;
  }
  const auto runs = runs_of(node, per_channel);
  if (!runs || !is_full(node.inputs[0])) return declined(why_not, "layout of " + to_string(node.inputs[0]));
  if (node.op->name == "quantized_affine" && node.inputs[0].dtype != node.outputs[0].dtype)
    return declined(why_not, "integers of two types");
  if (node.op->name == "quantized_affine") return std::make_unique<AffineRuns>(node, *runs, options.threads, isa);
  if (node.op->name == "requantize") return std::make_unique<RequantizeRuns>(node, *runs, options.threads, isa);
  return std::make_unique<QuantizeRuns>(node, *runs, options.threads, isa);
}

std::unique_ptr<Kernel> make_add(const NodeSignature& node, const KernelOptions& options, Isa isa,
                                 std::string& why_not) {
  const Layout& layout = node.outputs[0].layout;
  if (node.inputs[0].layout != layout || node.inputs[1].layout != layout || !is_full(node.outputs[0]))
    return declined(why_not, "layouts that differ, or blocks that are not full");
  return std::make_unique<QuantizedAdd>(node, options.threads, isa);
}

}  // namespace

void add_quantize(KernelTable& table, Isa isa) {
  for (const char* op : {"quantize_linear", "dequantize_linear", "requantize", "quantized_affine"})
    table.add(op, {"native", [isa](const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
                     return make_runs(node, options, isa, why_not);
                   }});
  table.add("quantized_add", {"native", [isa](const NodeSignature& node, const KernelOptions& options,
                                              std::string& why_not) { return make_add(node, options, isa, why_not); }});
}

}  // namespace weft::native
