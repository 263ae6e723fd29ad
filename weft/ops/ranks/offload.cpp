// Ops that carry a value out of memory and back: the plan places what lies between them in a file (graph/offloaded.h).
#include "weft/graph/offloaded.h"
#include "weft/ops/all.h"
#include "weft/ops/define.h"

namespace weft::ops {

namespace {

OpDef transfer_op(const char* name, std::string summary, std::string from, std::string to) {
  OpDef op;
  op.name = name;
  op.summary = std::move(summary);
  op.inputs = {std::move(from)};
  op.outputs = {std::move(to)};
  op.infer = [](const InferContext& context) -> std::vector<TensorType> {
    return {{context.dtype(0), context.shape(0), {}}};
  };
  // Passes add both after differentiation.
  op.gradient = [](GradContext& context) -> std::vector<ValueId> { return {context.output_gradients[0]}; };
  op.layout_rule = LayoutRule::elementwise;
  op.examples = {
      {"vector", {f32({7})}, {}, {}},
      {"matrix", {f32({3, 5})}, {}, {}},
      {"image", {f32({2, 3, 3, 2})}, {}, {}},
  };
  return op;
}

}  // namespace

void add_offload_ops(OpRegistry& registry) {
  registry.add(of_work(
      work::kFile, transfer_op(kStore, "Writes a tensor to the file of what is kept outside memory.", "x", "stored")));
  registry.add(
      of_work(work::kFile,
              transfer_op(kLoad, "Reads a tensor back from the file that a store has written it to.", "stored", "x")));
}

}  // namespace weft::ops
