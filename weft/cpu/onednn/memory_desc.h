// How oneDNN describes a tensor in memory, and its one-to-one relation to weft's layouts.
// Hides that a descriptor is a struct in oneDNN 2 and an object behind a handle in oneDNN 3.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <memory>
#include <optional>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft::onednn {

/// nullopt for types that oneDNN does not compute with.
std::optional<dnnl_data_type_t> data_type_of(DType dtype);

class MemoryDesc {
 public:
#if DNNL_VERSION_MAJOR >= 3
  using Pointer = const_dnnl_memory_desc_t;
#else
  using Pointer = const dnnl_memory_desc_t*;
#endif
  /// A copy of oneDNN's own.
  explicit MemoryDesc(Pointer desc);
  /// The primitive chooses the layout.
  static MemoryDesc any(dnnl_data_type_t type, const std::vector<int64_t>& dims);
  static MemoryDesc strided(dnnl_data_type_t type, const std::vector<int64_t>& dims,
                            const std::vector<int64_t>& strides);
  /// nullopt where this oneDNN has no name for the layout.
  static std::optional<MemoryDesc> with_layout(dnnl_data_type_t type, const std::vector<int64_t>& dims,
                                               const Layout& layout);

  /// nullopt where the memory is none of weft's layouts (Winograd and other opaque forms, gaps, extra data).
  std::optional<Layout> layout() const;
  int64_t bytes() const;
  /// Equal up to strides of dimensions of size 1.
  bool same_memory(const MemoryDesc& other) const;

#if DNNL_VERSION_MAJOR >= 3
  Pointer get() const { return desc_.get(); }

 private:
  std::shared_ptr<dnnl_memory_desc> desc_;
#else
  Pointer get() const { return &desc_; }

 private:
  dnnl_memory_desc_t desc_;
#endif
};

/// The descriptor of a tensor as it is; a scalar becomes one dimension of size 1. nullopt: oneDNN cannot describe it.
std::optional<MemoryDesc> describe(const TensorType& type);

}  // namespace weft::onednn
