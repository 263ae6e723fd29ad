#include "weft/cpu/onednn/ask_pointwise.h"

#include "weft/cpu/onednn/primitive_walk.h"

namespace weft::onednn {

namespace {

std::shared_ptr<const PrimitiveDesc> forward_hint(const Engine& engine, const PointFunction& function,
                                                  const MemoryDesc& data) {
  return std::make_shared<const PrimitiveDesc>(ask_eltwise(engine, function, data));
}

PrimitiveDesc ask_binary_with(const Engine& engine, dnnl_alg_kind_t algorithm, const MemoryDesc& a, const MemoryDesc& b,
                              const MemoryDesc& output, const std::vector<PostOp>& post_ops) {
#if DNNL_VERSION_MAJOR >= 3
  return ask(
      [&](dnnl_primitive_desc_t* desc, const_dnnl_primitive_attr_t attributes) {
        return dnnl_binary_primitive_desc_create(desc, engine.get(), algorithm, a.get(), b.get(), output.get(),
                                                 attributes);
      },
      nullptr, post_ops);
#else
  const auto operation = std::make_shared<dnnl_binary_desc_t>();
  return ask(engine, dnnl_binary_desc_init(operation.get(), algorithm, a.get(), b.get(), output.get()), operation,
             nullptr, post_ops);
#endif
}

}  // namespace

PrimitiveDesc ask_binary(const Engine& engine, dnnl_alg_kind_t algorithm, const MemoryDesc& a, const MemoryDesc& b,
                         const MemoryDesc& output) {
  return ask_binary_with(engine, algorithm, a, b, output, {});
}

PrimitiveDesc ask_keeping_nan(const Engine& engine, dnnl_alg_kind_t function, const MemoryDesc& data) {
  // max(x, x) is x: eltwise primitives take no operations after theirs, binary ones do.
  return ask_binary_with(engine, dnnl_binary_max, data, data, data, {{function, {}}, {dnnl_binary_max, data}});
}

#if DNNL_VERSION_MAJOR >= 3

PrimitiveDesc ask_eltwise(const Engine& engine, const PointFunction& function, const MemoryDesc& data) {
  return ask([&](dnnl_primitive_desc_t* desc, const_dnnl_primitive_attr_t attributes) {
    return dnnl_eltwise_forward_primitive_desc_create(desc, engine.get(), dnnl_forward_training, function.algorithm,
                                                      data.get(), data.get(), function.alpha, function.beta,
                                                      attributes);
  });
}

PrimitiveDesc ask_eltwise_backward(const Engine& engine, const PointFunction& function, const MemoryDesc& data) {
  const auto hint = forward_hint(engine, function, data);
  return ask(
      [&](dnnl_primitive_desc_t* desc, const_dnnl_primitive_attr_t attributes) {
        return dnnl_eltwise_backward_primitive_desc_create(desc, engine.get(), function.algorithm, data.get(),
                                                           data.get(), data.get(), function.alpha, function.beta,
                                                           hint->get(), attributes);
      },
      hint);
}

PrimitiveDesc ask_reduction(const Engine& engine, dnnl_alg_kind_t algorithm, const MemoryDesc& input,
                            const MemoryDesc& output) {
  return ask([&](dnnl_primitive_desc_t* desc, const_dnnl_primitive_attr_t attributes) {
    return dnnl_reduction_primitive_desc_create(desc, engine.get(), algorithm, input.get(), output.get(), 0, 0,
                                                attributes);
  });
}

#else

PrimitiveDesc ask_eltwise(const Engine& engine, const PointFunction& function, const MemoryDesc& data) {
  const auto operation = std::make_shared<dnnl_eltwise_desc_t>();
  return ask(engine,
             dnnl_eltwise_forward_desc_init(operation.get(), dnnl_forward_training, function.algorithm, data.get(),
                                            function.alpha, function.beta),
             operation);
}

PrimitiveDesc ask_eltwise_backward(const Engine& engine, const PointFunction& function, const MemoryDesc& data) {
  const auto operation = std::make_shared<dnnl_eltwise_desc_t>();
  return ask(engine,
             dnnl_eltwise_backward_desc_init(operation.get(), function.algorithm, data.get(), data.get(),
                                             function.alpha, function.beta),
             operation, forward_hint(engine, function, data));
}

PrimitiveDesc ask_reduction(const Engine& engine, dnnl_alg_kind_t algorithm, const MemoryDesc& input,
                            const MemoryDesc& output) {
  const auto operation = std::make_shared<dnnl_reduction_desc_t>();
  return ask(engine, dnnl_reduction_desc_init(operation.get(), algorithm, input.get(), output.get(), 0, 0), operation);
}

#endif

}  // namespace weft::onednn
