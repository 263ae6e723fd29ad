#include "weft/cpu/onednn/ask_layers.h"

#include "weft/cpu/onednn/primitive_walk.h"

namespace weft::onednn {

namespace {

constexpr unsigned kScaleAndShift = dnnl_use_scale | dnnl_use_shift;
constexpr std::array<int64_t, 2> kDense{0, 0};  // oneDNN counts the zeros between a window's elements

unsigned batch_norm_flags(dnnl_prop_kind_t pass) {
  return pass == dnnl_forward_inference ? kScaleAndShift | dnnl_use_global_stats : kScaleAndShift;
}

std::shared_ptr<const PrimitiveDesc> share(PrimitiveDesc desc) {
  return std::make_shared<const PrimitiveDesc>(std::move(desc));
}

}  // namespace

#if DNNL_VERSION_MAJOR >= 3

PrimitiveDesc ask_batch_norm(const Engine& engine, dnnl_prop_kind_t pass, const MemoryDesc& data, double epsilon) {
  return ask([&](dnnl_primitive_desc_t* desc, const_dnnl_primitive_attr_t attributes) {
    return dnnl_batch_normalization_forward_primitive_desc_create(desc, engine.get(), pass, data.get(), data.get(),
                                                                  static_cast<float>(epsilon), batch_norm_flags(pass),
                                                                  attributes);
  });
}

PrimitiveDesc ask_batch_norm_backward(const Engine& engine, const MemoryDesc& data, double epsilon) {
  const auto hint = share(ask_batch_norm(engine, dnnl_forward_training, data, epsilon));
  return ask(
      [&](dnnl_primitive_desc_t* desc, const_dnnl_primitive_attr_t attributes) {
        return dnnl_batch_normalization_backward_primitive_desc_create(
            desc, engine.get(), dnnl_backward, data.get(), data.get(), data.get(), static_cast<float>(epsilon),
            kScaleAndShift, hint->get(), attributes);
      },
      hint);
}

PrimitiveDesc ask_layer_norm(const Engine& engine, const MemoryDesc& data, const MemoryDesc& statistics,
                             double epsilon) {
  return ask([&](dnnl_primitive_desc_t* desc, const_dnnl_primitive_attr_t attributes) {
    return dnnl_layer_normalization_forward_primitive_desc_create(
        desc, engine.get(), dnnl_forward_training, data.get(), data.get(), statistics.get(),
        static_cast<float>(epsilon), kScaleAndShift, attributes);
  });
}

PrimitiveDesc ask_layer_norm_backward(const Engine& engine, const MemoryDesc& data, const MemoryDesc& statistics,
                                      double epsilon) {
  const auto hint = share(ask_layer_norm(engine, data, statistics, epsilon));
  return ask(
      [&](dnnl_primitive_desc_t* desc, const_dnnl_primitive_attr_t attributes) {
        return dnnl_layer_normalization_backward_primitive_desc_create(
            desc, engine.get(), dnnl_backward, data.get(), data.get(), data.get(), statistics.get(),
            static_cast<float>(epsilon), kScaleAndShift, hint->get(), attributes);
      },
      hint);
}

PrimitiveDesc ask_pooling(const Engine& engine, const PoolingQuery& query) {
  return ask([&](dnnl_primitive_desc_t* desc, const_dnnl_primitive_attr_t attributes) {
    return dnnl_pooling_forward_primitive_desc_create(desc, engine.get(), dnnl_forward_training, query.algorithm,
                                                      query.input.get(), query.output.get(), query.stride.data(),
                                                      query.kernel.data(), kDense.data(), query.padding.data(),
                                                      query.padding.data(), attributes);
  });
}

PrimitiveDesc ask_pooling_backward(const Engine& engine, const PoolingQuery& query,
                                   std::shared_ptr<const PrimitiveDesc> forward) {
  return ask(
      [&](dnnl_primitive_desc_t* desc, const_dnnl_primitive_attr_t attributes) {
        return dnnl_pooling_backward_primitive_desc_create(
            desc, engine.get(), query.algorithm, query.input.get(), query.output.get(), query.stride.data(),
            query.kernel.data(), kDense.data(), query.padding.data(), query.padding.data(), forward->get(), attributes);
      },
      forward);
}

#else

PrimitiveDesc ask_batch_norm(const Engine& engine, dnnl_prop_kind_t pass, const MemoryDesc& data, double epsilon) {
  const auto operation = std::make_shared<dnnl_batch_normalization_desc_t>();
  return ask(engine,
             dnnl_batch_normalization_forward_desc_init(operation.get(), pass, data.get(), static_cast<float>(epsilon),
                                                        batch_norm_flags(pass)),
             operation);
}

PrimitiveDesc ask_batch_norm_backward(const Engine& engine, const MemoryDesc& data, double epsilon) {
  const auto operation = std::make_shared<dnnl_batch_normalization_desc_t>();
  return ask(engine,
             dnnl_batch_normalization_backward_desc_init(operation.get(), dnnl_backward, data.get(), data.get(),
                                                         static_cast<float>(epsilon), kScaleAndShift),
             operation, share(ask_batch_norm(engine, dnnl_forward_training, data, epsilon)));
}

PrimitiveDesc ask_layer_norm(const Engine& engine, const MemoryDesc& data, const MemoryDesc& statistics,
                             double epsilon) {
  const auto operation = std::make_shared<dnnl_layer_normalization_desc_t>();
  return ask(engine,
             dnnl_layer_normalization_forward_desc_init(operation.get(), dnnl_forward_training, data.get(),
                                                        statistics.get(), static_cast<float>(epsilon), kScaleAndShift),
             operation);
}

PrimitiveDesc ask_layer_norm_backward(const Engine& engine, const MemoryDesc& data, const MemoryDesc& statistics,
                                      double epsilon) {
  const auto operation = std::make_shared<dnnl_layer_normalization_desc_t>();
  return ask(engine,
             dnnl_layer_normalization_backward_desc_init(operation.get(), dnnl_backward, data.get(), data.get(),
                                                         statistics.get(), static_cast<float>(epsilon), kScaleAndShift),
             operation, share(ask_layer_norm(engine, data, statistics, epsilon)));
}

PrimitiveDesc ask_pooling(const Engine& engine, const PoolingQuery& query) {
  const auto operation = std::make_shared<dnnl_pooling_v2_desc_t>();
  return ask(engine,
             dnnl_pooling_v2_forward_desc_init(
                 operation.get(), dnnl_forward_training, query.algorithm, query.input.get(), query.output.get(),
                 query.stride.data(), query.kernel.data(), kDense.data(), query.padding.data(), query.padding.data()),
             operation);
}

PrimitiveDesc ask_pooling_backward(const Engine& engine, const PoolingQuery& query,
                                   std::shared_ptr<const PrimitiveDesc> forward) {
  const auto operation = std::make_shared<dnnl_pooling_v2_desc_t>();
  return ask(engine,
             dnnl_pooling_v2_backward_desc_init(operation.get(), query.algorithm, query.input.get(), query.output.get(),
                                                query.stride.data(), query.kernel.data(), kDense.data(),
                                                query.padding.data(), query.padding.data()),
             operation, std::move(forward));
}

#endif

}  // namespace weft::onednn
