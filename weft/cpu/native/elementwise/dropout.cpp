// dropout: the mask is drawn again wherever it is needed, from counters, never stored.
#include "weft/base/parallel.h"
#include "weft/base/rng.h"
#include "weft/cpu/native/support/families.h"
#include "weft/tensor/element.h"

namespace weft::native {

namespace {

template <typename T>
struct Loops {
  void (*dropout)(const T* x, T* y, int64_t begin, int64_t end, uint64_t key, uint64_t step, uint32_t threshold,
                  float factor);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/elementwise/dropout_loops.h"
#define WEFT_LOOPS_PER_TYPE
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

template <typename T>
class Dropout : public Kernel {
 public:
  Dropout(const NodeSignature& node, int threads, const Loops<T>& loops)
      : loops_(loops),
        threads_(threads),
        elements_(node.inputs[0].elements()),
        stream_(static_cast<uint64_t>(node.attributes.integer("stream"))),
        // u 2^-24 < p for an integer u where u < ceil(p 2^24): the comparison of the definition, in integers.
        threshold_(static_cast<uint32_t>(std::ceil(node.attributes.real("probability") * 0x1p24))),
        factor_(static_cast<float>(1 / (1 - node.attributes.real("probability")))),
        dtype_(node.inputs[0].dtype),
        blocks_(node.attributes.integers("blocks")),
        parts_(node.attributes.integers("parts")) {}
  std::string name() const override { return "native:dropout"; }
  void run(const KernelArguments& a) override {
    const uint64_t key = mix(static_cast<uint64_t>(*static_cast<const int64_t*>(a.inputs[1])), stream_);
    const auto step = static_cast<uint64_t>(*static_cast<const int64_t*>(a.inputs[2]));
    constexpr int64_t kPiece = 256;  // elements; a multiple of the words that a loop draws at once
    parallel_for(threads_, (elements_ + kPiece - 1) / kPiece, 32, [&](int64_t begin, int64_t end) {
      if (!blocks_.empty()) return draw_part(a, begin * kPiece, std::min(end * kPiece, elements_), key, step);
      loops_.dropout(a.input<T>(0), a.output<T>(0), begin * kPiece, std::min(end * kPiece, elements_), key, step,
                     threshold_, factor_);
    });
  }

 private:
  /// The same elements of a part, run by run of those that lie behind each other in the whole tensor.
  void draw_part(const KernelArguments& a, int64_t begin, int64_t end, uint64_t key, uint64_t step) const {
    while (begin < end) {
      int64_t at = begin, count = end - begin;
      for (size_t split = 0; split < blocks_.size(); ++split) {
        const int64_t block = blocks_[split], place = *static_cast<const int64_t*>(a.inputs[3 + split]);
        count = std::min(count, block - at % block);
        at = (at / block * parts_[split] + place) * block + at % block;
      }
      const T* x = a.input<T>(0) + begin;
      T* y = a.output<T>(0) + begin;
      begin += count;
      for (; count > 0 && at % 4 != 0; ++at, ++x, ++y, --count) {
        const uint32_t word = philox(key, step, static_cast<uint64_t>(at / 4))[static_cast<size_t>(at % 4)];
        const float scaled = static_cast<float>(load_element(dtype_, x, 0)) * factor_;
        store_element(dtype_, y, 0, (word >> 8) < threshold_ ? 0.0 : static_cast<double>(scaled));
      }
      if (count > 0) loops_.dropout(x - at, y - at, at, at + count, key, step, threshold_, factor_);
    }
  }

  const Loops<T>& loops_;
  const int threads_;
  const int64_t elements_;
  const uint64_t stream_;
  const uint32_t threshold_;
  const float factor_;
  const DType dtype_;
  const std::vector<int64_t> blocks_, parts_;  // by split of the whole tensor, the innermost first
};

}  // namespace

void add_dropout(KernelTable& table, Isa isa) {
  table.add("dropout", {"native",
                        [isa](const NodeSignature& node, const KernelOptions& options,
                              std::string& why_not) -> std::unique_ptr<Kernel> {
                          NodeSignature floats = node;
                          floats.inputs.resize(1);
                          if (!plain_images(floats, 1, 1, why_not)) return nullptr;
                          return with_stored_type(node.inputs[0].dtype, [&](auto number) -> std::unique_ptr<Kernel> {
                            using T = decltype(number);
                            return std::make_unique<Dropout<T>>(node, options.threads, loops_for<T>(isa));
                          });
                        }});
}

}  // namespace weft::native
