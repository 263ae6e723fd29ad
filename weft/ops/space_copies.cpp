// Ops that carry a value between the host's memory and a device's own (graph/space_copies.h).
#include "weft/graph/space_copies.h"

#include "weft/ops/all.h"
#include "weft/ops/define.h"

namespace weft::ops {

namespace {

OpDef space_copy(const char* name, const char* reverse, std::string summary) {
  OpDef op;
  op.name = name;
  op.summary = std::move(summary);
  op.inputs = {"x"};
  op.outputs = {"y"};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    return {{context.dtype(0), context.shape(0), {}}};
  };
  op.gradient = [reverse](GradContext& context) -> std::vector<ValueId> {
    return {context.graph.add(reverse, {context.output_gradients[0]})};
  };
  op.work = work::kCopies;
  op.layout_rule = LayoutRule::elementwise;
  op.examples = {
      {"scalar", {f32({})}, {}, {}},
      {"vector", {f32({7})}, {}, {}},
      {"image", {f32({2, 3, 3, 2})}, {}, {}},
  };
  return op;
}

}  // namespace

void add_space_copy_ops(OpRegistry& registry) {
  registry.add(space_copy(kCopyToDevice, kCopyToHost, "Copies a tensor from the host's memory to the device's own."));
  registry.add(space_copy(kCopyToHost, kCopyToDevice, "Copies a tensor from the device's own memory to the host's."));
}

}  // namespace weft::ops
