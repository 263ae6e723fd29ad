// Asks oneDNN for implementations of an operation and walks through them, best first.
// Hides that oneDNN 2 describes an operation before it asks, and oneDNN 3 asks at once.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/cpu/onednn/handles.h"
#include "weft/cpu/onednn/memory_desc.h"

namespace weft::onednn {

/// How good an implementation is, told by its name.
enum class Quality {
  reference,  // plain loops
  gemm,       // im2col and a matrix product
  direct,     // generated for the shape: jit, brgemm
};

/// One implementation of an operation with fixed memory descriptors, before any code is generated.
class PrimitiveDesc {
 public:
  PrimitiveDesc() = default;
  /// `hint` is what the descriptor was asked with, and refers to; may be null.
  explicit PrimitiveDesc(PrimitiveDescHandle desc, std::shared_ptr<const PrimitiveDesc> hint = nullptr)
      : hint_(std::move(hint)), desc_(std::move(desc)) {}

  explicit operator bool() const { return desc_ != nullptr; }
  dnnl_primitive_desc_t get() const { return desc_.get(); }
  /// Moves to the next implementation; false (and empty) after the last.
  bool next();
  /// oneDNN's name, e.g. "jit:avx512_core".
  std::string implementation() const;
  Quality quality() const;
  /// `query` is a dnnl_query_*_md.
  MemoryDesc memory_desc(dnnl_query_t query) const;

#if DNNL_VERSION_MAJOR < 3
  using IteratorHandle = std::unique_ptr<dnnl_primitive_desc_iterator, Destroy<dnnl_primitive_desc_iterator_destroy>>;
  /// Takes the iterator at its first implementation, and what the iterator refers to.
  PrimitiveDesc(IteratorHandle iterator, std::shared_ptr<const void> operation,
                std::shared_ptr<const PrimitiveDesc> hint);
#endif

 private:
  std::shared_ptr<const PrimitiveDesc> hint_;
  PrimitiveDescHandle desc_;
#if DNNL_VERSION_MAJOR < 3
  std::shared_ptr<const void> operation_;
  IteratorHandle iterator_;
#endif
};

/// The first implementation, from this one on, that is more than oneDNN's reference loops; empty where there is none.
PrimitiveDesc skip_reference(PrimitiveDesc desc);

enum class Pass { forward, backward_data, backward_weights };

/// What a primitive does to its result before it stores it: a function, or arithmetic with another operand.
struct PostOp {
  dnnl_alg_kind_t algorithm;
  std::optional<MemoryDesc> operand = {};
  float alpha = 0, beta = 0;  // of the function
};

/// Image, weights and output stand for the tensors themselves or their gradients, as the pass says.
struct ConvolutionQuery {
  Pass pass = Pass::forward;
  MemoryDesc image, weights, output;
  std::array<int64_t, 2> stride{1, 1}, padding{0, 0}, dilation{1, 1};  // (height, width); dilation 1: dense
  std::optional<MemoryDesc> bias = {};                                 // or its gradient, beside that of the weights
  dnnl_alg_kind_t algorithm = dnnl_convolution_direct;
  std::vector<PostOp> post_ops = {};  // of the forward pass
};

// Each is empty where oneDNN has no implementation. Scratchpads are the caller's.
PrimitiveDesc ask_convolution(const Engine& engine, const ConvolutionQuery& query);
PrimitiveDesc ask_matmul(const Engine& engine, const MemoryDesc& a, const MemoryDesc& b, const MemoryDesc& output);
PrimitiveDesc ask_reorder(const Engine& engine, const MemoryDesc& from, const MemoryDesc& to);

}  // namespace weft::onednn
