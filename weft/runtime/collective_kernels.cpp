#include "weft/runtime/collective_kernels.h"

#include <cstring>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/parallel.h"
#include "weft/graph/collective.h"

namespace weft {

namespace {

constexpr int64_t kCopyGrain = 1 << 18;  // bytes per thread that are worth one

bool gathers(const NodeSignature& node) {
  return node.op->name == kAllGather || node.op->name == kAllGatherStart || node.op->name == kAllGatherWait;
}

class CollectiveKernel : public Kernel {
 public:
  enum class Part { start, wait, both };

  CollectiveKernel(Part part, std::shared_ptr<comm::Collectives> collectives, const NodeSignature& node, int threads)
      : part_(part), collectives_(std::move(collectives)), spec_(reduction_of(node)), threads_(threads) {
    for (const TensorType& type : node.inputs) bytes_.push_back(type.bytes());
    if (node.op->name == kAllReduceStart) priority_ = node.attributes.integer(kPriority);
  }

  std::string name() const override { return "comm"; }

  void run(const KernelArguments& arguments) override {
    // Here and not before: planning makes kernels that never run, and ranks prepare together.
    if (id_.index < 0) id_ = collectives_->prepare(spec_);
    if (part_ == Part::wait) collectives_->wait(id_);
    for (size_t tensor = 0; tensor < bytes_.size(); ++tensor) copy(arguments, tensor);
    if (part_ == Part::start) collectives_->start(id_, arguments.outputs, priority_);
    if (part_ == Part::both) collectives_->reduce(id_, arguments.outputs);
  }

 private:
  /// Where the plan has not let the result lie in its operand.
  void copy(const KernelArguments& arguments, size_t tensor) const {
    const std::byte* from = arguments.input<std::byte>(tensor);
    std::byte* to = arguments.output<std::byte>(tensor);
    if (spec_.kind == comm::CollectiveKind::all_gather && part_ != Part::wait)
      to += collectives_->rank() * bytes_[tensor];  // of this rank's part
    if (from == to) return;
    parallel_for(threads_, bytes_[tensor], kCopyGrain, [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    });
  }

  const Part part_;
  const std::shared_ptr<comm::Collectives> collectives_;
  const comm::ReductionSpec spec_;
  comm::CollectiveId id_;
  int64_t priority_ = 0;
  const int threads_;
  std::vector<int64_t> bytes_;  // per tensor
};

}  // namespace

comm::ReductionSpec reduction_of(const NodeSignature& node) {
  comm::ReductionSpec spec;
  const bool is_half = node.op->name != kAllReduce && node.op->name != kAllGather;
  spec.name =
      is_half ? fmt::format("collective {} ({})", node.attributes.integer("number"), node.attributes.text("tensors"))
              : fmt::format("'{}'", node.name);
  spec.dtype = node.inputs[0].dtype;
  if (gathers(node)) {
    spec.kind = comm::CollectiveKind::all_gather;
    const int64_t ranks = node.attributes.integer("ranks");
    for (const TensorType& type : node.outputs) spec.elements.push_back(type.bytes() / size_of(type.dtype) / ranks);
    return spec;
  }
  spec.reduction = node.attributes.text("reduction") == "sum" ? comm::Reduction::sum : comm::Reduction::mean;
  for (const TensorType& type : node.inputs) spec.elements.push_back(type.bytes() / size_of(type.dtype));
  return spec;
}

void add_collective_kernels(KernelTable& table, std::shared_ptr<comm::Collectives> collectives) {
  using Part = CollectiveKernel::Part;
  for (const auto& [op, part] : {std::pair{kAllReduce, Part::both}, std::pair{kAllReduceStart, Part::start},
                                 std::pair{kAllReduceWait, Part::wait}, std::pair{kAllGather, Part::both},
                                 std::pair{kAllGatherStart, Part::start}, std::pair{kAllGatherWait, Part::wait}}) {
    const auto make = [collectives, part = part](const NodeSignature& node, const KernelOptions& options,
                                                 std::string&) -> std::unique_ptr<Kernel> {
      // Declining would leave the node to a kernel that exchanges nothing.
      if (gathers(node))
        check(node.attributes.integer("ranks") == collectives->size(), "a graph that gathers from other ranks");
      else
        check(node.inputs == node.outputs, "a collective's results have other types than its operands");
      return std::make_unique<CollectiveKernel>(part, collectives, node, options.threads);
    };
    table.add_first(op, {"comm", make});
  }
}

}  // namespace weft
