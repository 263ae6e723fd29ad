// max_pool2d of integers of 8 bits: position by position, all channels that lie side by side at a time.
#include <algorithm>
#include <cstring>
#include <limits>

#include "weft/base/parallel.h"
#include "weft/cpu/native/integer/row_ends.h"
#include "weft/cpu/native/support/channel_view.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

constexpr int64_t kGrain = 16384;  // results that are worth a thread

class BytePool : public Kernel {
 public:
  BytePool(const NodeSignature& node, int threads, Isa isa)
      : in_(node.inputs[0].shape),
        out_(node.outputs[0].shape),
        channels_(adjacent_channels(node.inputs[0])),
        kernel_(node.attributes.integers("kernel")),
        stride_(node.attributes.integers("stride")),
        padding_(node.attributes.integers("padding")),
        lowest_(node.inputs[0].dtype == DType::i8 ? 0x80 : 0),
        threads_(threads),
        loops_(node.inputs[0].dtype == DType::i8 ? row_loops_for(isa).of_i8 : row_loops_for(isa).of_u8) {}
  std::string name() const override { return "native:byte_pool"; }

  void run(const KernelArguments& a) override {
    const int64_t planes = in_[0] * in_[1] / channels_, row = out_[3] * channels_;
    parallel_for(threads_, planes * out_[2], std::max<int64_t>(1, kGrain / std::max<int64_t>(1, row)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t line = begin; line < end; ++line)
                     run_line(a.input<uint8_t>(0) + line / out_[2] * in_[2] * in_[3] * channels_, line % out_[2],
                              a.output<uint8_t>(0) + line * row);
                 });
  }

 private:
  void run_line(const uint8_t* plane, int64_t y, uint8_t* to) const {
    const int64_t top = y * stride_[0] - padding_[0];
    for (int64_t x = 0; x < out_[3]; ++x, to += channels_) {
      const int64_t left = x * stride_[1] - padding_[1];
      std::memset(to, lowest_, static_cast<size_t>(channels_));
      for (int64_t h = std::max<int64_t>(top, 0); h < std::min(top + kernel_[0], in_[2]); ++h)
        for (int64_t w = std::max<int64_t>(left, 0); w < std::min(left + kernel_[1], in_[3]); ++w)
          loops_.maximum(to, plane + (h * in_[3] + w) * channels_, channels_);
    }
  }

  const Shape in_, out_;
  const int64_t channels_;
  const std::vector<int64_t> kernel_, stride_, padding_;
  const int lowest_;
  const int threads_;
  const ByteLoops& loops_;
};

}  // namespace

void add_byte_pool(KernelTable& table, Isa isa) {
  table.add("max_pool2d", {"native",
                           [isa](const NodeSignature& node, const KernelOptions& options,
                                 std::string& why_not) -> std::unique_ptr<Kernel> {
                             const TensorType &from = node.inputs[0], &to = node.outputs[0];
                             if (from.dtype != DType::i8 && from.dtype != DType::u8)
                               return declined(why_not, "it is of " + std::string(name_of(from.dtype)));
                             const bool is_blocked = !from.layout.blocks.empty();
                             if (from.layout != to.layout || is_blocked || adjacent_channels(from) == 0)
                               return declined(why_not, "layout of " + to_string(from));
                             return std::make_unique<BytePool>(node, options.threads, isa);
                           }});
}

}  // namespace weft::native
