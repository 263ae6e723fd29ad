#include "weft/cpu/reference/widen.h"

#include <algorithm>

#include "weft/tensor/element.h"

namespace weft::reference {
namespace {

bool is_narrow(const TensorType& type) { return type.dtype == DType::bf16 || type.dtype == DType::f16; }

NodeSignature widened(NodeSignature node) {
  for (auto* types : {&node.inputs, &node.outputs})
    for (TensorType& type : *types)
      if (is_narrow(type)) type.dtype = DType::f32;
  return node;
}

class Widened : public Kernel {
 public:
  /// `inner` serves the widened node.
  Widened(const NodeSignature& node, std::unique_ptr<Kernel> inner) : inner_(std::move(inner)) {
    for (const TensorType& type : node.inputs) inputs_.push_back(place(type));
    for (const TensorType& type : node.outputs) outputs_.push_back(place(type));
    sources_.resize(inputs_.size());
    targets_.resize(outputs_.size());
  }

  std::string name() const override { return inner_->name(); }
  int64_t workspace_bytes() const override { return copies_bytes_ + inner_->workspace_bytes(); }

  void run(const KernelArguments& arguments) override {
    auto* const workspace = static_cast<std::byte*>(arguments.workspace);
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const auto& [dtype, elements, offset] = inputs_[k];
      sources_[k] = offset < 0 ? arguments.inputs[k] : workspace + offset;
      for (int64_t i = 0; offset >= 0 && i < elements; ++i)
        store_element(DType::f32, workspace + offset, i, load_element(dtype, arguments.inputs[k], i));
    }
    for (size_t k = 0; k < outputs_.size(); ++k)
      targets_[k] = outputs_[k].offset < 0 ? arguments.outputs[k] : workspace + outputs_[k].offset;
    inner_->run({sources_, targets_, workspace + copies_bytes_});
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const auto& [dtype, elements, offset] = outputs_[k];
      for (int64_t i = 0; offset >= 0 && i < elements; ++i)
        store_element(dtype, arguments.outputs[k], i, load_element(DType::f32, workspace + offset, i));
    }
  }

 private:
  struct Place {
    DType dtype;
    int64_t elements;
    int64_t offset;  // of the f32 copy in the workspace; -1: there is none
  };

  Place place(const TensorType& type) {
    if (!is_narrow(type)) return {type.dtype, type.elements(), -1};
    const Place place{type.dtype, type.elements(), copies_bytes_};
    copies_bytes_ += align_up(byte_size(DType::f32, type.elements()));
    return place;
  }

  const std::unique_ptr<Kernel> inner_;
  std::vector<Place> inputs_, outputs_;
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
  int64_t copies_bytes_ = 0;
};

}  // namespace

KernelFactory with_narrow_types(KernelFactory make) {
  return [make = std::move(make)](const NodeSignature& node, const KernelOptions& options,
                                  std::string& why_not) -> std::unique_ptr<Kernel> {
    if (std::none_of(node.inputs.begin(), node.inputs.end(), is_narrow) &&
        std::none_of(node.outputs.begin(), node.outputs.end(), is_narrow))
      return make(node, options, why_not);
    std::unique_ptr<Kernel> inner = make(widened(node), options, why_not);
    return inner == nullptr ? nullptr : std::make_unique<Widened>(node, std::move(inner));
  };
}

}  // namespace weft::reference
