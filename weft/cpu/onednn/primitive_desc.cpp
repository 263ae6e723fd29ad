#include "weft/cpu/onednn/primitive_desc.h"

#include "weft/cpu/onednn/primitive_walk.h"

namespace weft::onednn {

namespace {

/// oneDNN counts the zeros between taps.
std::array<int64_t, 2> gaps(const std::array<int64_t, 2>& dilation) { return {dilation[0] - 1, dilation[1] - 1}; }

/// Backward descriptors want a forward one beside them; any layout will do.
ConvolutionQuery forward_hint(const ConvolutionQuery& query);

#if DNNL_VERSION_MAJOR >= 3

MemoryDesc any_of(const MemoryDesc& desc) {
  const dnnl_dims_t* dims = nullptr;
  int rank = 0;
  dnnl_data_type_t type = dnnl_data_type_undef;
  require(dnnl_memory_desc_query(desc.get(), dnnl_query_dims, &dims), "dnnl_memory_desc_query");
  require(dnnl_memory_desc_query(desc.get(), dnnl_query_ndims_s32, &rank), "dnnl_memory_desc_query");
  require(dnnl_memory_desc_query(desc.get(), dnnl_query_data_type, &type), "dnnl_memory_desc_query");
  return MemoryDesc::any(type, {*dims, *dims + rank});
}

#else

MemoryDesc any_of(const MemoryDesc& desc) {
  const auto* source = desc.get();
  return MemoryDesc::any(source->data_type, {source->dims, source->dims + source->ndims});
}

#endif

ConvolutionQuery forward_hint(const ConvolutionQuery& query) {
  return {Pass::forward, any_of(query.image), any_of(query.weights), any_of(query.output), query.stride,
          query.padding, query.dilation,      std::nullopt,          query.algorithm};
}

}  // namespace

AttributesHandle make_attributes(const std::vector<PostOp>& post_ops) {
  dnnl_primitive_attr_t attributes = nullptr;
  require(dnnl_primitive_attr_create(&attributes), "dnnl_primitive_attr_create");
  AttributesHandle owner(attributes);
  require(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user),
          "dnnl_primitive_attr_set_scratchpad_mode");
  if (post_ops.empty()) return owner;
  dnnl_post_ops_t chain = nullptr;
  require(dnnl_post_ops_create(&chain), "dnnl_post_ops_create");
  const std::unique_ptr<dnnl_post_ops, Destroy<dnnl_post_ops_destroy>> chain_owner(chain);
  for (const PostOp& op : post_ops) {
    if (op.operand) {
      require(dnnl_post_ops_append_binary(chain, op.algorithm, op.operand->get()), "dnnl_post_ops_append_binary");
      continue;
    }
#if DNNL_VERSION_MAJOR >= 3
    require(dnnl_post_ops_append_eltwise(chain, op.algorithm, op.alpha, op.beta), "dnnl_post_ops_append_eltwise");
#else
    require(dnnl_post_ops_append_eltwise(chain, 1, op.algorithm, op.alpha, op.beta), "dnnl_post_ops_append_eltwise");
#endif
  }
  require(dnnl_primitive_attr_set_post_ops(attributes, chain), "dnnl_primitive_attr_set_post_ops");
  return owner;
}

PrimitiveDesc skip_reference(PrimitiveDesc desc) {
  while (desc && desc.implementation().find("ref") != std::string::npos) desc.next();
  return desc;
}

std::string PrimitiveDesc::implementation() const {
  const char* name = nullptr;
  require(dnnl_primitive_desc_query(get(), dnnl_query_impl_info_str, 0, &name), "dnnl_primitive_desc_query");
  return name;
}

Quality PrimitiveDesc::quality() const {
  const std::string name = implementation();
  const auto has = [&](const char* part) { return name.find(part) != name.npos; };
  if (has("gemm:") && !has("gemm:ref")) return Quality::gemm;
  return has("jit") || has("brg") ? Quality::direct : Quality::reference;
}

MemoryDesc PrimitiveDesc::memory_desc(dnnl_query_t query) const {
  const auto* desc = dnnl_primitive_desc_query_md(get(), query, 0);
  check(desc != nullptr, "a primitive has the memory descriptor asked for");
  return MemoryDesc(desc);
}

#if DNNL_VERSION_MAJOR >= 3

bool PrimitiveDesc::next() {
  if (desc_ && dnnl_primitive_desc_next_impl(desc_.get()) != dnnl_success) desc_.reset();
  return desc_ != nullptr;
}

PrimitiveDesc ask_convolution(const Engine& engine, const ConvolutionQuery& query) {
  const auto dilation = gaps(query.dilation);
  const auto *stride = query.stride.data(), *padding = query.padding.data();
  const auto* bias = query.bias ? query.bias->get() : nullptr;
  if (query.pass == Pass::forward)
    return ask(
        [&](dnnl_primitive_desc_t* desc, const_dnnl_primitive_attr_t attributes) {
          return dnnl_convolution_forward_primitive_desc_create(
              desc, engine.get(), dnnl_forward_training, query.algorithm, query.image.get(), query.weights.get(), bias,
              query.output.get(), stride, dilation.data(), padding, padding, attributes);
        },
        nullptr, query.post_ops);
  const auto hint = std::make_shared<const PrimitiveDesc>(ask_convolution(engine, forward_hint(query)));
  if (query.pass == Pass::backward_data)
    return ask(
        [&](dnnl_primitive_desc_t* desc, const_dnnl_primitive_attr_t attributes) {
          return dnnl_convolution_backward_data_primitive_desc_create(
              desc, engine.get(), query.algorithm, query.image.get(), query.weights.get(), query.output.get(), stride,
              dilation.data(), padding, padding, hint->get(), attributes);
        },
        hint);
  return ask(
      [&](dnnl_primitive_desc_t* desc, const_dnnl_primitive_attr_t attributes) {
        return dnnl_convolution_backward_weights_primitive_desc_create(
            desc, engine.get(), query.algorithm, query.image.get(), query.weights.get(), bias, query.output.get(),
            stride, dilation.data(), padding, padding, hint->get(), attributes);
      },
      hint);
}

PrimitiveDesc ask_matmul(const Engine& engine, const MemoryDesc& a, const MemoryDesc& b, const MemoryDesc& output) {
  return ask([&](dnnl_primitive_desc_t* desc, const_dnnl_primitive_attr_t attributes) {
    return dnnl_matmul_primitive_desc_create(desc, engine.get(), a.get(), b.get(), nullptr, output.get(), attributes);
  });
}

#else

PrimitiveDesc::PrimitiveDesc(IteratorHandle iterator, std::shared_ptr<const void> operation,
                             std::shared_ptr<const PrimitiveDesc> hint)
    : hint_(std::move(hint)),
      desc_(dnnl_primitive_desc_iterator_fetch(iterator.get())),
      operation_(std::move(operation)),
      iterator_(std::move(iterator)) {}

bool PrimitiveDesc::next() {
  desc_.reset();
  if (iterator_ && dnnl_primitive_desc_iterator_next(iterator_.get()) == dnnl_success)
    desc_.reset(dnnl_primitive_desc_iterator_fetch(iterator_.get()));
  return desc_ != nullptr;
}

PrimitiveDesc ask_convolution(const Engine& engine, const ConvolutionQuery& query) {
  const auto dilation = gaps(query.dilation);
  const auto *stride = query.stride.data(), *padding = query.padding.data();
  const auto* bias = query.bias ? query.bias->get() : nullptr;
  const auto operation = std::make_shared<dnnl_convolution_desc_t>();
  if (query.pass == Pass::forward)
    return ask(engine,
               dnnl_dilated_convolution_forward_desc_init(
                   operation.get(), dnnl_forward_training, query.algorithm, query.image.get(), query.weights.get(),
                   bias, query.output.get(), stride, dilation.data(), padding, padding),
               operation, nullptr, query.post_ops);
  const dnnl_status_t described = query.pass == Pass::backward_data
                                      ? dnnl_dilated_convolution_backward_data_desc_init(
                                            operation.get(), query.algorithm, query.image.get(), query.weights.get(),
                                            query.output.get(), stride, dilation.data(), padding, padding)
                                      : dnnl_dilated_convolution_backward_weights_desc_init(
                                            operation.get(), query.algorithm, query.image.get(), query.weights.get(),
                                            bias, query.output.get(), stride, dilation.data(), padding, padding);
  return ask(engine, described, operation,
             std::make_shared<const PrimitiveDesc>(ask_convolution(engine, forward_hint(query))));
}

PrimitiveDesc ask_matmul(const Engine& engine, const MemoryDesc& a, const MemoryDesc& b, const MemoryDesc& output) {
  const auto operation = std::make_shared<dnnl_matmul_desc_t>();
  return ask(engine, dnnl_matmul_desc_init(operation.get(), a.get(), b.get(), nullptr, output.get()), operation);
}

#endif

PrimitiveDesc ask_reorder(const Engine& engine, const MemoryDesc& from, const MemoryDesc& to) {
  const AttributesHandle attributes = make_attributes();
  dnnl_primitive_desc_t desc = nullptr;
  if (dnnl_reorder_primitive_desc_create(&desc, from.get(), engine.get(), to.get(), engine.get(), attributes.get()) !=
      dnnl_success)
    return {};
  return PrimitiveDesc(PrimitiveDescHandle(desc));
}

}  // namespace weft::onednn
