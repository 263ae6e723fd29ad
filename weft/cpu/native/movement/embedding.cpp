// embedding, embedding_backward and causal_mask: copies and sums of whole rows, which the compiler and the C library do
// well enough on any instruction set.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"
#include "weft/tensor/element.h"

namespace weft::native {

namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread

class Embedding : public Kernel {
 public:
  Embedding(const NodeSignature& node, int threads)
      : threads_(threads),
        rows_(node.inputs[0].shape[0]),
        width_(node.inputs[0].shape[1]),
        count_(node.inputs[1].elements()),
        is_part_(node.inputs.size() > 2) {}
  std::string name() const override { return "native:embedding"; }
  void run(const KernelArguments& a) override {
    const auto* table = static_cast<const float*>(a.inputs[0]);
    const auto* indices = static_cast<const int32_t*>(a.inputs[1]);
    const int64_t place = is_part_ ? *static_cast<const int64_t*>(a.inputs[2]) * rows_ : 0;
    parallel_for(threads_, count_, std::max<int64_t>(1, kGrain / width_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        float* out = static_cast<float*>(a.outputs[0]) + i * width_;
        const int64_t row = indices[i] - place;
        if (row >= 0 && row < rows_)
          std::memcpy(out, table + row * width_, static_cast<size_t>(width_) * sizeof(float));
        else  // no such row: NaN, which shows in the loss
          std::fill(out, out + width_, is_part_ && indices[i] >= 0 ? 0.0f : std::numeric_limits<float>::quiet_NaN());
      }
    });
  }

 private:
  const int threads_;
  const int64_t rows_, width_, count_;
  const bool is_part_;  // of a table, whose place is the third operand
};

/// Each thread sums some columns of all rows, in the order of the indices: the same result for any number of threads.
class EmbeddingBackward : public Kernel {
 public:
  EmbeddingBackward(const NodeSignature& node, int threads)
      : threads_(node.inputs[0].elements() < kGrain ? 1 : threads),
        rows_(node.outputs[0].shape[0]),
        width_(node.outputs[0].shape[1]),
        count_(node.inputs[1].elements()),
        is_part_(node.inputs.size() > 2) {}
  std::string name() const override { return "native:embedding_backward"; }
  void run(const KernelArguments& a) override {
    const auto* gradient = static_cast<const float*>(a.inputs[0]);
    const auto* indices = static_cast<const int32_t*>(a.inputs[1]);
    auto* table = static_cast<float*>(a.outputs[0]);
    const int64_t place = is_part_ ? *static_cast<const int64_t*>(a.inputs[2]) * rows_ : 0;
    constexpr int64_t kLine = 16;  // floats of a cache line, which two threads should not share
    parallel_for(threads_, (width_ + kLine - 1) / kLine, 1, [&](int64_t first, int64_t last) {
      const int64_t begin = first * kLine, end = std::min(last * kLine, width_);
      for (int64_t row = 0; row < rows_; ++row)
        std::fill(table + row * width_ + begin, table + row * width_ + end, 0.0f);
      for (int64_t i = 0; i < count_; ++i) {
        const int64_t row = indices[i] - place;
        if (row < 0 || row >= rows_) continue;
        float* to = table + row * width_;
        const float* from = gradient + i * width_;
#pragma omp simd
        for (int64_t d = begin; d < end; ++d) to[d] += from[d];
      }
    });
  }

 private:
  const int threads_;
  const int64_t rows_, width_, count_;
  const bool is_part_;
};

/// Copies elements of 2 or 4 bytes, which Word has, and fills the rest with the bits of one.
template <typename Word>
class CausalMask : public Kernel {
 public:
  CausalMask(const NodeSignature& node, int threads)
      : threads_(threads),
        columns_(node.inputs[0].shape[node.inputs[0].shape.rank() - 1]),
        rows_(node.inputs[0].shape[node.inputs[0].shape.rank() - 2]),
        all_rows_(node.inputs[0].elements() / columns_),
        masked_() {
    store_element(node.outputs[0].dtype, &masked_, 0, node.attributes.real("value"));
  }
  std::string name() const override { return "native:causal_mask"; }
  void run(const KernelArguments& a) override {
    parallel_for(threads_, all_rows_, std::max<int64_t>(1, kGrain / columns_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const Word* x = a.input<Word>(0) + row * columns_;
        Word* y = a.output<Word>(0) + row * columns_;
        const int64_t kept = std::clamp<int64_t>(row % rows_ + columns_ - rows_ + 1, 0, columns_);
        if (x != y) std::memcpy(y, x, static_cast<size_t>(kept) * sizeof(Word));
        std::fill(y + kept, y + columns_, masked_);
      }
    });
  }

 private:
  const int threads_;
  const int64_t columns_, rows_, all_rows_;
  Word masked_;
};

/// f32 and plain but for the indices, which are the second input.
bool rows_and_indices(const NodeSignature& node, std::string& why_not) {
  NodeSignature floats = node;
  floats.inputs.resize(1);
  if (!all_plain_f32(floats, why_not)) return false;
  const TensorType& indices = node.inputs[1];
  if (indices.dtype == DType::i32 && indices.layout.is_plain() && node.inputs[0].elements() > 0) return true;
  why_not = fmt::format("indices {} into {}", to_string(indices), to_string(node.inputs[0]));
  return false;
}

}  // namespace

void add_embedding(KernelTable& table, Isa) {
  table.add("embedding", {"native",
                          [](const NodeSignature& node, const KernelOptions& options,
                             std::string& why_not) -> std::unique_ptr<Kernel> {
                            if (!rows_and_indices(node, why_not)) return nullptr;
                            return std::make_unique<Embedding>(node, options.threads);
                          }});
  table.add("embedding_backward", {"native",
                                   [](const NodeSignature& node, const KernelOptions& options,
                                      std::string& why_not) -> std::unique_ptr<Kernel> {
                                     if (!rows_and_indices(node, why_not)) return nullptr;
                                     return std::make_unique<EmbeddingBackward>(node, options.threads);
                                   }});
  table.add("causal_mask", {"native",
                            [](const NodeSignature& node, const KernelOptions& options,
                               std::string& why_not) -> std::unique_ptr<Kernel> {
                              if (!plain_images(node, 1, 1, why_not)) return nullptr;
                              if (node.inputs[0].elements() == 0) return declined(why_not, "the input is empty");
                              if (node.inputs[0].dtype == DType::bf16)
                                return std::make_unique<CausalMask<uint16_t>>(node, options.threads);
                              return std::make_unique<CausalMask<uint32_t>>(node, options.threads);
                            }});
}

}  // namespace weft::native
