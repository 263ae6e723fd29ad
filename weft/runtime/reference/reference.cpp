#include "weft/runtime/reference/reference.h"

#include "weft/base/error.h"

namespace weft {
namespace reference {
namespace {

class ReferenceKernel : public Kernel {
 public:
  explicit ReferenceKernel(Body body) : body_(std::move(body)) {}
  std::string name() const override { return "reference"; }
  void run(const KernelArguments& arguments) override { body_(arguments); }

 private:
  Body body_;
};

/// Empty where the operands fit, else why not.
std::string objection(const std::vector<TensorType>& types, const char* side, bool any_layout, Accepts accepts) {
  for (size_t index = 0; index < types.size(); ++index) {
    const TensorType& type = types[index];
    if (!any_layout && !type.layout.is_plain())
      return fmt::format("layout {} of {} {}: only plain ones are served", to_string(type.layout), side, index);
    if (accepts == Accepts::f32 && is_floating(type.dtype) && type.dtype != DType::f32)
      return fmt::format("{} {} is {}: only f32 is served", side, index, name_of(type.dtype));
  }
  return "";
}

void add_candidate(KernelTable& table, const std::string& op, Prepare prepare, bool any_layout, Accepts accepts) {
  table.add(op, {"reference",
                 [prepare = std::move(prepare), any_layout, accepts](const NodeSignature& node, const KernelOptions&,
                                                                     std::string& why_not) -> std::unique_ptr<Kernel> {
                   why_not = objection(node.inputs, "operand", any_layout, accepts);
                   if (why_not.empty()) why_not = objection(node.outputs, "output", any_layout, accepts);
                   if (!why_not.empty()) return nullptr;
                   return std::make_unique<ReferenceKernel>(prepare(node));
                 }});
}

}  // namespace

void add_plain(KernelTable& table, const std::string& op, Prepare prepare, Accepts accepts) {
  add_candidate(table, op, std::move(prepare), false, accepts);
}

void add_any_layout(KernelTable& table, const std::string& op, Prepare prepare) {
  add_candidate(table, op, std::move(prepare), true, Accepts::any_dtype);
}

StridedView::StridedView(const Shape& shape, std::vector<int64_t> strides, int64_t base)
    : dims_(shape.dims()), strides_(std::move(strides)), base_(base), contiguous_(true) {
  check(dims_.size() == strides_.size(), "a strided view wants one stride per dimension");
  const std::vector<int64_t> row_major = row_major_strides(shape);
  for (size_t axis = 0; axis < dims_.size(); ++axis)
    if (dims_[axis] != 1 && strides_[axis] != row_major[axis]) contiguous_ = false;
}

StridedView broadcast_view(const Shape& from, const Shape& to) {
  const std::vector<int64_t> own = row_major_strides(from);
  std::vector<int64_t> strides(static_cast<size_t>(to.rank()), 0);
  const int missing = to.rank() - from.rank();
  for (int axis = 0; axis < from.rank(); ++axis)
    if (from[axis] != 1) strides[static_cast<size_t>(axis + missing)] = own[static_cast<size_t>(axis)];
  return {to, std::move(strides)};
}

}  // namespace reference

void add_reference_kernels(KernelTable& table) {
  reference::add_conv(table);
  reference::add_matmul(table);
  reference::add_batch_norm(table);
  reference::add_layer_norm(table);
  reference::add_elementwise(table);
  reference::add_reduce(table);
  reference::add_pool(table);
  reference::add_shape(table);
  reference::add_resample(table);
  reference::add_indexing(table);
  reference::add_loss(table);
  reference::add_embedding(table);
  reference::add_rnn(table);
  reference::add_ctc(table);
  reference::add_random(table);
  reference::add_attention(table);
  reference::add_update(table);
}

}  // namespace weft
