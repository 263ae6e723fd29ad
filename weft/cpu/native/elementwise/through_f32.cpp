#include "weft/cpu/native/elementwise/through_f32.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/parallel.h"
#include "weft/cpu/native/support/families.h"

namespace weft::native {

namespace {

struct Loops {
  void (*widen)(const uint16_t* from, float* to, int64_t count);
  void (*narrow)(const float* from, uint16_t* to, int64_t count);
};

}  // namespace

}  // namespace weft::native

#define WEFT_LOOPS "weft/cpu/native/elementwise/through_f32_loops.h"
#include "weft/cpu/native/support/multiversion.h"

namespace weft::native {

namespace {

constexpr int64_t kGrain = 16384;  // elements below which a second thread costs more than it brings

bool is_f16(const TensorType& type) { return type.dtype == DType::f16; }

class ThroughF32 : public Kernel {
 public:
  /// `inner` serves the node in f32.
  ThroughF32(const NodeSignature& node, std::unique_ptr<Kernel> inner, int threads, Isa isa)
      : inner_(std::move(inner)), threads_(threads), loops_(loops_for(isa)) {
    for (const TensorType& type : node.inputs) inputs_.push_back(place(type));
    for (size_t index = 0; index < node.outputs.size(); ++index) outputs_.push_back(place_result(node, index));
    sources_.resize(inputs_.size());
    targets_.resize(outputs_.size());
  }

  std::string name() const override { return inner_->name() + " through f32"; }
  int64_t workspace_bytes() const override { return copies_bytes_ + inner_->workspace_bytes(); }

  void run(const KernelArguments& arguments) override {
    auto* const workspace = static_cast<std::byte*>(arguments.workspace);
    const auto copy_at = [&](const Place& place) { return reinterpret_cast<float*>(workspace + place.offset); };
    for (size_t k = 0; k < inputs_.size(); ++k) {
      sources_[k] = inputs_[k].offset < 0 ? arguments.inputs[k] : copy_at(inputs_[k]);
      if (inputs_[k].offset < 0) continue;
      parallel_for(threads_, inputs_[k].elements, kGrain, [&](int64_t begin, int64_t end) {
        loops_.widen(arguments.input<uint16_t>(k) + begin, copy_at(inputs_[k]) + begin, end - begin);
      });
    }
    for (size_t k = 0; k < outputs_.size(); ++k)
      targets_[k] = outputs_[k].offset < 0 ? arguments.outputs[k] : copy_at(outputs_[k]);
    inner_->run({sources_, targets_, workspace + copies_bytes_});
    for (size_t k = 0; k < outputs_.size(); ++k) {
      if (outputs_[k].offset < 0) continue;
      parallel_for(threads_, outputs_[k].elements, kGrain, [&](int64_t begin, int64_t end) {
        loops_.narrow(copy_at(outputs_[k]) + begin, arguments.output<uint16_t>(k) + begin, end - begin);
      });
    }
  }

 private:
  struct Place {
    int64_t elements;  // with the zeros that fill blocks up
    int64_t offset;    // of the f32 copy in the workspace; -1: there is none
    bool is_shared = false;
  };

  Place place(const TensorType& type) {
    if (!is_f16(type)) return {0, -1};
    const int64_t elements = storage_elements(type.shape, type.layout);
    const Place place{elements, copies_bytes_};
    copies_bytes_ += align_up(byte_size(DType::f32, elements));
    return place;
  }

  /// Over an operand's copy where the op may write there.
  Place place_result(const NodeSignature& node, size_t index) {
    const TensorType& type = node.outputs[index];
    if (is_f16(type))
      for (const auto& [output, input] : node.op->in_place) {
        if (static_cast<size_t>(output) != index || static_cast<size_t>(input) >= inputs_.size()) continue;
        Place& operand = inputs_[static_cast<size_t>(input)];
        if (operand.is_shared || node.inputs[static_cast<size_t>(input)] != type) continue;
        operand.is_shared = true;
        return operand;
      }
    return place(type);
  }

  const std::unique_ptr<Kernel> inner_;
  const int threads_;
  const Loops& loops_;
  std::vector<Place> inputs_, outputs_;
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
  int64_t copies_bytes_ = 0;
};

}  // namespace

bool has_f16(const NodeSignature& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), is_f16) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), is_f16);
}

NodeSignature in_f32(NodeSignature node) {
  for (auto* types : {&node.inputs, &node.outputs})
    for (TensorType& type : *types)
      if (is_f16(type)) type.dtype = DType::f32;
  return node;
}

void add_through_f32(KernelTable& table, const OpRegistry& registry, Isa isa) {
  for (const auto& [op, definition] : registry.all()) {
    const bool may_be_f16 = definition.precision != PrecisionRule::full || op == "cast" || op == "reorder";
    if (!may_be_f16 || table.candidates(op).empty()) continue;
    const auto make = [better = table.candidates(op), isa](const NodeSignature& node, const KernelOptions& options,
                                                           std::string& why_not) -> std::unique_ptr<Kernel> {
      if (!has_f16(node)) return declined(why_not, "no operand is f16");
      const NodeSignature wide = in_f32(node);
      for (const KernelCandidate& candidate : better)
        if (auto inner = candidate.make(wide, options, why_not))
          return std::make_unique<ThroughF32>(node, std::move(inner), options.threads, isa);
      return nullptr;
    };
    table.add(op, {"through f32", make});
  }
}

}  // namespace weft::native
