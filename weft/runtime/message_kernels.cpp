#include "weft/runtime/message_kernels.h"

#include <cstring>
#include <tuple>
#include <utility>

#include "weft/base/error.h"
#include "weft/graph/collective.h"

namespace weft {

namespace {

class MessageKernel : public Kernel {
 public:
  MessageKernel(bool starts, bool waits, std::shared_ptr<comm::Collectives> collectives, const NodeSignature& node)
      : starts_(starts), waits_(waits), collectives_(std::move(collectives)), spec_(message_of(node)) {}

  std::string name() const override { return "comm"; }

  void run(const KernelArguments& arguments) override {
    // Here and not before: planning makes kernels that never run.
    if (id_.index < 0) id_ = collectives_->prepare(spec_);
    if (starts_) {
      if (spec_.sends) copy(arguments);
      collectives_->start(id_, arguments.outputs[0]);
    }
    if (waits_) collectives_->wait(id_);
    if (waits_ && !starts_) copy(arguments);
  }

 private:
  /// Where the plan has not let the result lie in its operand.
  void copy(const KernelArguments& arguments) const {
    if (arguments.inputs[0] != arguments.outputs[0])
      std::memcpy(arguments.outputs[0], arguments.inputs[0], static_cast<size_t>(spec_.bytes));
  }

  const bool starts_, waits_;
  const std::shared_ptr<comm::Collectives> collectives_;
  const comm::MessageSpec spec_;
  comm::MessageId id_;
};

}  // namespace

comm::MessageSpec message_of(const NodeSignature& node) {
  comm::MessageSpec spec;
  spec.sends = node.op->name == kSend || node.op->name == kSendStart || node.op->name == kSendWait;
  const bool is_half = node.attributes.has("number");
  spec.name = is_half
                  ? fmt::format("message {} ({})", node.attributes.integer("number"), node.attributes.text("tensors"))
                  : fmt::format("'{}'", node.name);
  spec.bytes = node.outputs[0].bytes();
  spec.peer = static_cast<int>(node.attributes.integer("peer"));
  spec.tag = static_cast<int>(node.attributes.integer("tag"));
  return spec;
}

void add_message_kernels(KernelTable& table, const std::shared_ptr<comm::Collectives>& collectives) {
  for (const CollectiveOps& ops : kMessages)
    for (const auto& [op, starts, waits] :
         {std::tuple{ops.whole, true, true}, std::tuple{ops.start, true, false}, std::tuple{ops.wait, false, true}}) {
      const auto make = [collectives, starts = starts, waits = waits](const NodeSignature& node, const KernelOptions&,
                                                                      std::string&) -> std::unique_ptr<Kernel> {
        return std::make_unique<MessageKernel>(starts, waits, collectives, node);
      };
      table.add_first(op, {"comm", make});
    }
}

}  // namespace weft
