// fused_conv2d: a convolution that adds the residual and applies the activation before it stores its sums.
//
// oneDNN's relu and clip make a number of a NaN, which weft's do not. But the processor notes an invalid operation
// where their maximum meets a NaN. So each run looks at that note: where there is one, the convolution runs again by
// itself, and a plain loop does the rest. The residual is therefore never overwritten.
#include <atomic>

#include "weft/base/invalid_operations.h"
#include "weft/base/parallel.h"
#include "weft/cpu/onednn/convolution.h"
#include "weft/tensor/element.h"

namespace weft::onednn {

namespace {

/// Whether a thread of the team has noted an invalid operation since the last call.
bool take_notes(int threads) {
  if (threads == 1) return take_invalid_operation();
  std::atomic<bool> any{false};
  parallel_run(threads, threads, [&](int, int) {
    if (take_invalid_operation()) any = true;
  });
  return any;
}

PrimitiveDesc ask_fused(const Engine& engine, const Convolution& c, const ConvolutionDescs& descs) {
  return ask_convolution(engine, c, descs.image, descs.weights, descs.output);
}

class FusedConvolution : public Kernel {
 public:
  FusedConvolution(const Request& request, const Convolution& c, std::unique_ptr<Kernel> fused)
      : node_(request.node),
        engine_(request.engine),
        threads_(request.threads),
        count_(storage_elements(c.output.shape, c.output.layout)),
        has_residual_(c.residual.has_value()),
        activation_(c.activation),
        fused_(std::move(fused)) {}

  std::string name() const override {
    return fused_->name() + (has_residual_ ? "+residual" : "") + (activation_ == "none" ? "" : "+" + activation_);
  }
  int64_t workspace_bytes() const override { return fused_->workspace_bytes(); }

  void run(const KernelArguments& arguments) override {
    if (threads_ == 1) take_invalid_operation();  // what others have left
    fused_->run(arguments);
    if (activation_ == "none" || !take_notes(threads_)) return;
    // It may be of what ran before.
    fused_->run(arguments);
    if (take_notes(threads_)) run_apart(arguments);
  }

 private:
  /// What a NaN costs: the plain kernel and its workspace are made when there is one first.
  void run_apart(KernelArguments arguments) {
    if (plain_ == nullptr) {
      const ThreadScope scope(threads_);
      const Convolution c = read_convolution(node_)->unfused();
      const ConvolutionDescs descs = *describe_operands(c);
      plain_ = build_convolution(c, ask_fused(*engine_, c, descs), descs, {node_, threads_, engine_});
      workspace_ = allocate_aligned(plain_->workspace_bytes());
    }
    arguments.workspace = workspace_.get();
    plain_->run(arguments);
    finish(has_residual_ ? arguments.inputs[3] : nullptr, arguments.outputs[0]);
  }

  void finish(const void* residual, void* result) const {
    const DType dtype = node_.outputs[0].dtype;
    for (int64_t i = 0; i < count_; ++i) {
      auto sum = static_cast<float>(load_element(dtype, result, i));
      if (residual != nullptr) sum += static_cast<float>(load_element(dtype, residual, i));
      if (sum < 0) sum = 0;
      if (activation_ == "relu6" && sum > 6) sum = 6;
      store_element(dtype, result, i, static_cast<double>(sum));
    }
  }

  const NodeSignature node_;
  const std::shared_ptr<const Engine> engine_;
  const int threads_;
  const int64_t count_;
  const bool has_residual_;
  const std::string activation_;
  const std::unique_ptr<Kernel> fused_;
  std::unique_ptr<Kernel> plain_;
  std::shared_ptr<std::byte> workspace_;
};

bool is_full(const TensorType& type) { return storage_elements(type.shape, type.layout) == type.elements(); }

}  // namespace

std::optional<std::string> why_not_fused(const Convolution& c, const Engine& engine) {
  if (!notes_invalid_operations()) return "a NaN would not be noted";
  // oneDNN 2.6 gets a second operand wrong where blocks are padded.
  if (c.residual && !is_full(c.output)) return "blocks that are not full";
  const auto descs = describe_operands(c);
  if (!descs) return "layouts without a descriptor";
  const PrimitiveDesc desc = ask_fused(engine, c, *descs);
  if (!desc || desc.quality() != Quality::direct) return "no fast implementation with what follows the convolution";
  return std::nullopt;
}

std::unique_ptr<Kernel> make_fused_convolution(const Request& request, std::string& why_not) {
  const Engine& engine = *request.engine;
  const auto c = read_convolution(request.node);
  if (!c) return declined(why_not, "an operand is empty");
  if (c->residual && request.node.inputs[3] != request.node.outputs[0])
    return declined(why_not, "the residual lies otherwise than the result");
  if (auto reason = why_not_fused(*c, engine)) return declined(why_not, *std::move(reason));
  const ConvolutionDescs descs = *describe_operands(*c);
  if (!ask_fused(engine, c->unfused(), descs)) return declined(why_not, no_implementation(request.node));
  return std::make_unique<FusedConvolution>(request, *c,
                                            build_convolution(*c, ask_fused(engine, *c, descs), descs, request));
}

}  // namespace weft::onednn
