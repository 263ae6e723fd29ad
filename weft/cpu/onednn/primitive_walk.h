// How an ask_... function makes a PrimitiveDesc in either version of oneDNN; included by the files that define them.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weft/cpu/onednn/primitive_desc.h"

namespace weft::onednn {

/// The scratchpad is the caller's.
AttributesHandle make_attributes(const std::vector<PostOp>& post_ops = {});

#if DNNL_VERSION_MAJOR >= 3

/// `create(dnnl_primitive_desc_t*, attributes)` is the call that asks. `hint` may be null.
template <typename Create>
PrimitiveDesc ask(const Create& create, std::shared_ptr<const PrimitiveDesc> hint = nullptr,
                  const std::vector<PostOp>& post_ops = {}) {
  const AttributesHandle attributes = make_attributes(post_ops);
  dnnl_primitive_desc_t desc = nullptr;
  if (create(&desc, attributes.get()) != dnnl_success) return {};
  return PrimitiveDesc(PrimitiveDescHandle(desc), std::move(hint));
}

#else

/// `described` is the status of the call that filled in the operation. `hint` may be null.
template <typename Operation>
PrimitiveDesc ask(const Engine& engine, dnnl_status_t described, const std::shared_ptr<Operation>& operation,
                  std::shared_ptr<const PrimitiveDesc> hint = nullptr, const std::vector<PostOp>& post_ops = {}) {
  if (described != dnnl_success) return {};
  const AttributesHandle attributes = make_attributes(post_ops);
  dnnl_primitive_desc_iterator_t iterator = nullptr;
  if (dnnl_primitive_desc_iterator_create(&iterator, operation.get(), attributes.get(), engine.get(),
                                          hint ? hint->get() : nullptr) != dnnl_success)
    return {};
  return PrimitiveDesc(PrimitiveDesc::IteratorHandle(iterator), operation, std::move(hint));
}

#endif

}  // namespace weft::onednn
