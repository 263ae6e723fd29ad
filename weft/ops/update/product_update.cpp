#include "weft/ops/update/product_update.h"

#include "weft/ops/define.h"
#include "weft/ops/update/update_support.h"

namespace weft::ops {

namespace {

std::vector<TensorType> infer(const InferContext& context) {
  context.require_rank(0, 2);
  context.require_dtype(0, DType::f32);
  const DType rows = context.require_compute_dtype(1);
  context.require_dtype(2, rows);
  context.require_rank(1, 2);
  context.require_rank(2, 2);
  if (context.shape(1)[0] != context.shape(2)[0])
    context.fail(fmt::format("{} and {} want equally many rows", context.describe(1), context.describe(2)));
  if (context.shape(0) != Shape{context.shape(1)[1], context.shape(2)[1]})
    context.fail(fmt::format("the product of {} transposed and {} has another shape than the parameter {}",
                             context.describe(1), context.describe(2), context.describe(0)));
  context.require_same_shape(3, 0);
  context.require_dtype(3, DType::f32);
  require_scalar(context, 4, DType::f32);
  require_apply(context, 5);
  require_range(context, "momentum", true);
  require_range(context, "weight_decay", false);
  return {f32(context.shape(0)), f32(context.shape(0))};
}

OpExample example(std::string label, int64_t terms, int64_t rows, int64_t columns, Attributes attributes,
                  DType dtype = DType::f32) {
  const TensorType parameter = f32({rows, columns});
  return {std::move(label),
          {parameter, typed(dtype, {terms, rows}), typed(dtype, {terms, columns}), parameter, f32({})},
          std::move(attributes),
          {{-1, 1}, {-1, 1}, {-1, 1}, {-1, 1}, {0.01, 0.1}}};
}

}  // namespace

void add_product_update_op(OpRegistry& registry) {
  OpDef op;
  op.name = kProductSgdUpdate;
  op.summary = "sgd_update with the gradient left^T right, of which no more than a tile is ever in memory.";
  op.inputs = {"parameter", "left", "right", "velocity", "learning_rate", kApply};
  op.outputs = {"parameter", "velocity"};
  op.attributes = registry.get("sgd_update").attributes;
  op.infer = infer;
  op.flops = [](const auto& inputs, const auto&, const Attributes& attributes) {
    return (2 * inputs[1].shape[0] + (attributes.boolean("nesterov") ? 8 : 6)) * inputs[0].elements();
  };
  op.in_place = {{0, 0}, {1, 3}};
  op.is_update = true;
  op.examples = {example("fully connected layer", 6, 10, 24, {{"weight_decay", 5e-2}}),
                 example("whole tiles", 16, 12, 64, {}),
                 example("Nesterov", 3, 7, 5, {{"nesterov", true}, {"momentum", 0.8}, {"weight_decay", 1e-2}}),
                 example("one row", 1, 4, 70, {{"momentum", 0.0}}),
                 example("rows in bf16", 5, 9, 20, {{"weight_decay", 1e-2}}, DType::bf16)};
  OpExample applied = example("applied", 4, 5, 7, {});
  applied.inputs.push_back(f32({}));
  applied.ranges.push_back({0.5, 1});
  op.examples.push_back(std::move(applied));
  registry.add(of_work(work::kUpdates, std::move(op)));
}

}  // namespace weft::ops
