// transpose, broadcast_to, slice, concat, pad, reorder, cast and constant: a few strided copies each.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "weft/base/parallel.h"
#include "weft/runtime/native/native.h"
#include "weft/runtime/native/strided_copy.h"

namespace weft::native {

namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread

using Dims = std::vector<int64_t>;

Dims zeros(const Shape& shape) { return Dims(static_cast<size_t>(shape.rank()), 0); }

/// One copy per input, over a target that is filled first where the copies leave gaps.
class Copy : public Kernel {
 public:
  Copy(const NodeSignature& node, std::vector<StridedCopy> copies, int threads)
      : copies_(std::move(copies)),
        threads_(threads),
        bytes_(node.outputs[0].bytes()),
        name_("native:" + node.op->name) {}
  std::string name() const override { return name_; }
  /// Elements of four bytes with these bits; of any size where they are zero.
  void fill_with(uint32_t bits) {
    fills_ = true;
    bits_ = bits;
  }
  void run(const KernelArguments& a) override {
    if (fills_ && bits_ == 0) {
      std::memset(a.outputs[0], 0, static_cast<size_t>(bytes_));
    } else if (fills_) {
      auto* to = static_cast<uint32_t*>(a.outputs[0]);
      parallel_for(threads_, bytes_ / 4, kGrain,
                   [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, bits_); });
    }
    for (size_t i = 0; i < copies_.size(); ++i) copies_[i].run(a.inputs[i], a.outputs[0], threads_);
  }

 private:
  const std::vector<StridedCopy> copies_;
  const int threads_;
  const int64_t bytes_;
  const std::string name_;
  bool fills_ = false;
  uint32_t bits_ = 0;
};

std::unique_ptr<Copy> one_copy(const NodeSignature& node, AxisOffsets from, AxisOffsets to,
                               const KernelOptions& options) {
  std::vector<StridedCopy> copies;
  copies.emplace_back(std::move(from), std::move(to), size_of(node.outputs[0].dtype));
  return std::make_unique<Copy>(node, std::move(copies), options.threads);
}

using Result = std::unique_ptr<Kernel>;

Result make_transpose(const NodeSignature& node, const KernelOptions& options, std::string&) {
  const AxisOffsets source = axis_offsets(node.inputs[0]);
  AxisOffsets from;
  for (const int64_t axis : node.attributes.integers("permutation")) from.push_back(source[static_cast<size_t>(axis)]);
  return one_copy(node, std::move(from), axis_offsets(node.outputs[0]), options);
}

Result make_broadcast(const NodeSignature& node, const KernelOptions& options, std::string&) {
  const Shape& shape = node.outputs[0].shape;
  const AxisOffsets source = axis_offsets(node.inputs[0]);
  AxisOffsets from;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int own = axis - (shape.rank() - node.inputs[0].shape.rank());
    if (own >= 0 && node.inputs[0].shape[own] == shape[axis])
      from.push_back(source[static_cast<size_t>(own)]);
    else
      from.emplace_back(static_cast<size_t>(shape[axis]), 0);
  }
  return one_copy(node, std::move(from), axis_offsets(node.outputs[0]), options);
}

Result make_slice(const NodeSignature& node, const KernelOptions& options, std::string&) {
  const Dims& dims = node.outputs[0].shape.dims();
  return one_copy(node, axis_offsets(node.inputs[0], node.attributes.integers("starts"), dims),
                  axis_offsets(node.outputs[0]), options);
}

Result make_concat(const NodeSignature& node, const KernelOptions& options, std::string&) {
  const TensorType& whole = node.outputs[0];
  const int64_t given = node.attributes.integer("axis");
  const auto axis = static_cast<size_t>(given < 0 ? given + whole.shape.rank() : given);
  std::vector<StridedCopy> copies;
  Dims first = zeros(whole.shape);
  for (const TensorType& part : node.inputs) {
    copies.emplace_back(axis_offsets(part), axis_offsets(whole, first, part.shape.dims()), size_of(whole.dtype));
    first[axis] += part.shape.dims()[axis];
  }
  return std::make_unique<Copy>(node, std::move(copies), options.threads);
}

Result make_pad(const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
  const auto value = static_cast<float>(node.attributes.real("value"));
  if (value != 0 && node.inputs[0].dtype != DType::f32)
    return declined(why_not, fmt::format("padding {} with {}", to_string(node.inputs[0]), value));
  auto kernel =
      one_copy(node, axis_offsets(node.inputs[0]),
               axis_offsets(node.outputs[0], node.attributes.integers("low"), node.inputs[0].shape.dims()), options);
  kernel->fill_with(value == 0 ? 0 : __builtin_bit_cast(uint32_t, value));
  return kernel;
}

Result make_reorder(const NodeSignature& node, const KernelOptions& options, std::string&) {
  auto kernel = one_copy(node, axis_offsets(node.inputs[0]), axis_offsets(node.outputs[0]), options);
  const TensorType& out = node.outputs[0];
  if (storage_elements(out.shape, out.layout) != out.elements()) kernel->fill_with(0);  // padding
  return kernel;
}

Result make_constant(const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
  const double value = node.attributes.real("value");
  const DType dtype = node.outputs[0].dtype;
  uint32_t bits = 0;
  if (dtype == DType::f32)
    bits = __builtin_bit_cast(uint32_t, static_cast<float>(value));
  else if (value != 0)
    return declined(why_not, fmt::format("a constant {} that is not f32", name_of(dtype)));
  auto kernel = std::make_unique<Copy>(node, std::vector<StridedCopy>{}, options.threads);
  kernel->fill_with(bits);
  return kernel;
}

/// Between types that lose nothing on the way or lose it in one conversion.
class Cast : public Kernel {
 public:
  Cast(const NodeSignature& node, int threads)
      : from_(node.inputs[0].dtype), to_(node.outputs[0].dtype), threads_(threads), count_(node.inputs[0].elements()) {}
  std::string name() const override { return "native:cast"; }
  static bool serves(DType from, DType to) {
    return from == to ||
           (to == DType::f32 &&
            (from == DType::i32 || from == DType::i64 || from == DType::u8 || from == DType::bf16)) ||
           (from == DType::f32 && to == DType::bf16);
  }
  void run(const KernelArguments& a) override {
    parallel_for(threads_, count_, kGrain, [&](int64_t begin, int64_t end) {
      if (from_ == to_) {
        const int64_t size = size_of(from_);
        std::memcpy(static_cast<char*>(a.outputs[0]) + begin * size,
                    static_cast<const char*>(a.inputs[0]) + begin * size, static_cast<size_t>((end - begin) * size));
      } else if (to_ == DType::bf16) {
        convert<float, uint16_t>(a, begin, end, f32_to_bf16);
      } else if (from_ == DType::bf16) {
        convert<uint16_t, float>(a, begin, end, bf16_to_f32);
      } else if (from_ == DType::i32) {
        convert<int32_t, float>(a, begin, end, [](int32_t v) { return static_cast<float>(v); });
      } else if (from_ == DType::i64) {
        convert<int64_t, float>(a, begin, end, [](int64_t v) { return static_cast<float>(v); });
      } else {
        convert<uint8_t, float>(a, begin, end, [](uint8_t v) { return static_cast<float>(v); });
      }
    });
  }

 private:
  template <typename From, typename To, typename Convert>
  static void convert(const KernelArguments& a, int64_t begin, int64_t end, Convert&& one) {
    const auto* from = static_cast<const From*>(a.inputs[0]);
    auto* to = static_cast<To*>(a.outputs[0]);
    for (int64_t i = begin; i < end; ++i) to[i] = one(from[i]);
  }

  const DType from_, to_;
  const int threads_;
  const int64_t count_;
};

Result make_cast(const NodeSignature& node, const KernelOptions& options, std::string& why_not) {
  const DType from = node.inputs[0].dtype, to = node.outputs[0].dtype;
  if (!Cast::serves(from, to)) return declined(why_not, fmt::format("from {} to {}", name_of(from), name_of(to)));
  return std::make_unique<Cast>(node, options.threads);
}

}  // namespace

void add_copies(KernelTable& table, Isa) {
  using Make = Result (*)(const NodeSignature&, const KernelOptions&, std::string&);
  const auto add = [&](const char* op, Make make, bool only_plain) {
    table.add(op, {"native",
                   [make, only_plain](const NodeSignature& node, const KernelOptions& options,
                                      std::string& why_not) -> std::unique_ptr<Kernel> {
                     for (const auto* types : {&node.inputs, &node.outputs})
                       for (const TensorType& type : *types)
                         if (only_plain && !type.layout.is_plain())
                           return declined(why_not, "layout of " + to_string(type));
                     return make(node, options, why_not);
                   }});
  };
  add("transpose", make_transpose, true);
  add("broadcast_to", make_broadcast, true);
  add("slice", make_slice, true);
  add("concat", make_concat, true);
  add("pad", make_pad, true);
  add("cast", make_cast, true);
  add("constant", make_constant, true);
  add("reorder", make_reorder, false);
}

}  // namespace weft::native
