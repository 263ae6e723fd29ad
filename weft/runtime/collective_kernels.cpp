#include "weft/runtime/collective_kernels.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/parallel.h"
#include "weft/graph/collective.h"
#include "weft/runtime/message_kernels.h"

namespace weft {

namespace {

constexpr int64_t kCopyGrain = 1 << 18;  // bytes per thread that are worth one

comm::CollectiveKind kind_of(std::string_view whole) {
  using Kind = comm::CollectiveKind;
  constexpr std::pair<const char*, Kind> kinds[] = {{kAllReduce, Kind::all_reduce},
                                                    {kAllGather, Kind::all_gather},
                                                    {kReduceScatter, Kind::reduce_scatter},
                                                    {kBroadcast, Kind::broadcast},
                                                    {kReduceToRoot, Kind::reduce}};
  for (const auto& [name, kind] : kinds)
    if (whole == name) return kind;
  fail(ErrorKind::internal, "no collective: '{}'", whole);
}

const CollectiveOps& ops_of(const NodeSignature& node) {
  for (const CollectiveOps& ops : kCollectives)
    if (node.op->name == ops.whole || node.op->name == ops.start || node.op->name == ops.wait) return ops;
  fail(ErrorKind::internal, "no collective: '{}'", node.op->name);
}

/// What a node copies beside what travels: its operands to where they travel, if the plan has not put these in one
/// place, or what has come to its results.
class CollectiveKernel : public Kernel {
 public:
  enum class Part { start, wait, both };

  CollectiveKernel(Part part, std::shared_ptr<comm::Collectives> collectives, const NodeSignature& node, int threads)
      : part_(part), collectives_(std::move(collectives)), spec_(reduction_of(node)), threads_(threads) {
    for (const TensorType& type : node.inputs) input_bytes_.push_back(type.bytes());
    for (const TensorType& type : node.outputs) output_bytes_.push_back(type.bytes());
    if (node.op->name == kAllReduceStart) priority_ = node.attributes.integer(kPriority);
    // In its operand a scattered tensor's sums would take the place of others' numbers, which may be read again.
    if (part == Part::both && spec_.kind == comm::CollectiveKind::reduce_scatter) workspace_bytes_ = input_bytes_[0];
  }

  std::string name() const override { return "comm"; }
  int64_t workspace_bytes() const override { return workspace_bytes_; }

  void run(const KernelArguments& arguments) override {
    // Here and not before: planning makes kernels that never run, and ranks prepare together.
    if (id_.index < 0) id_ = collectives_->prepare(spec_);
    if (workspace_bytes_ > 0) {
      copy(arguments.input<std::byte>(0), static_cast<std::byte*>(arguments.workspace), input_bytes_[0]);
      collectives_->reduce(id_, std::span(&arguments.workspace, 1));
      take(arguments, 0, static_cast<const std::byte*>(arguments.workspace));
      return;
    }
    if (part_ == Part::wait) collectives_->wait(id_);
    for (size_t tensor = 0; tensor < input_bytes_.size(); ++tensor) {
      const auto* const from = arguments.input<std::byte>(tensor);
      if (part_ == Part::wait)
        take(arguments, tensor, from);
      else
        copy(from, arguments.output<std::byte>(tensor) + own_part(tensor), input_bytes_[tensor]);
    }
    if (part_ == Part::start) collectives_->start(id_, arguments.outputs, priority_);
    if (part_ != Part::both) return;
    collectives_->reduce(id_, arguments.outputs);
    take(arguments, 0, arguments.output<std::byte>(0));
  }

 private:
  /// Where in what travels this rank's part of a gathered tensor lies.
  int64_t own_part(size_t tensor) const {
    return spec_.kind == comm::CollectiveKind::all_gather ? collectives_->rank() * input_bytes_[tensor] : 0;
  }

  /// What has travelled, to the result.
  void take(const KernelArguments& arguments, size_t tensor, const std::byte* from) const {
    auto* const to = arguments.output<std::byte>(tensor);
    if (spec_.kind == comm::CollectiveKind::reduce && collectives_->rank() != spec_.root) {
      std::memset(to, 0, static_cast<size_t>(output_bytes_[tensor]));
      return;
    }
    const bool is_part = spec_.kind == comm::CollectiveKind::reduce_scatter;
    copy(from + (is_part ? collectives_->rank() * output_bytes_[tensor] : 0), to, output_bytes_[tensor]);
  }

  void copy(const std::byte* from, std::byte* to, int64_t bytes) const {
    if (from == to) return;
    parallel_for(threads_, bytes, kCopyGrain, [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    });
  }

  const Part part_;
  const std::shared_ptr<comm::Collectives> collectives_;
  const comm::CollectiveSpec spec_;
  comm::CollectiveId id_;
  int64_t priority_ = 0, workspace_bytes_ = 0;
  const int threads_;
  std::vector<int64_t> input_bytes_, output_bytes_;  // per tensor
};

/// Messages to and from all others, all under way at once.
class AllToAllKernel : public Kernel {
 public:
  AllToAllKernel(std::shared_ptr<comm::Collectives> collectives, const NodeSignature& node)
      : collectives_(std::move(collectives)),
        name_(fmt::format("'{}'", node.name)),
        bytes_(node.inputs[0].bytes() / node.attributes.integer("ranks")) {}

  std::string name() const override { return "comm"; }

  void run(const KernelArguments& arguments) override {
    // Here and not before: planning makes kernels that never run.
    if (messages_.empty()) prepare();
    // What is sent is only read.
    auto* const from = const_cast<std::byte*>(arguments.input<std::byte>(0));
    auto* const to = arguments.output<std::byte>(0);
    for (const Message& message : messages_)
      collectives_->start(message.id, (message.sends ? from : to) + message.peer * bytes_);
    const int64_t own = collectives_->rank() * bytes_;
    std::memcpy(to + own, from + own, static_cast<size_t>(bytes_));
    for (const Message& message : messages_) collectives_->wait(message.id);
  }

 private:
  struct Message {
    comm::MessageId id;
    bool sends = false;
    int peer = 0;
  };

  /// Room for what comes before what leaves. The next rank first, so that not all send to the same one.
  void prepare() {
    const int ranks = collectives_->size(), rank = collectives_->rank();
    for (const bool sends : {false, true})
      for (int distance = 1; distance < ranks; ++distance) {
        const int peer = (rank + (sends ? distance : ranks - distance)) % ranks;
        messages_.push_back(
            {collectives_->prepare(comm::MessageSpec{.name = name_, .bytes = bytes_, .sends = sends, .peer = peer}),
             sends, peer});
      }
  }

  const std::shared_ptr<comm::Collectives> collectives_;
  const std::string name_;
  const int64_t bytes_;  // from each rank to each
  std::vector<Message> messages_;
};

/// The rank's part of what it has whole.
class OwnPartKernel : public Kernel {
 public:
  OwnPartKernel(int rank, const NodeSignature& node, int threads) : rank_(rank), threads_(threads) {
    const auto dimension = static_cast<int>(node.attributes.integer("dimension"));
    runs_ = node.attributes.integer("blocks");
    for (int before = 0; before < dimension; ++before) runs_ *= node.inputs[0].shape[before];
    bytes_ = node.outputs[0].bytes() / std::max<int64_t>(1, runs_);
    stride_ = bytes_ * node.attributes.integer("ranks");
  }

  std::string name() const override { return "comm"; }

  void run(const KernelArguments& arguments) override {
    const std::byte* const from = arguments.input<std::byte>(0) + rank_ * bytes_;
    auto* const to = arguments.output<std::byte>(0);
    if (runs_ == 1) {
      parallel_for(threads_, bytes_, kCopyGrain, [&](int64_t begin, int64_t end) {
        std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
      });
      return;
    }
    parallel_for(threads_, runs_, std::max<int64_t>(1, kCopyGrain / std::max<int64_t>(1, bytes_)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t run = begin; run < end; ++run)
                     std::memcpy(to + run * bytes_, from + run * stride_, static_cast<size_t>(bytes_));
                 });
  }

 private:
  const int64_t rank_;
  const int threads_;
  int64_t runs_ = 1, bytes_ = 0, stride_ = 0;  // of elements that lie behind each other
};

class AxisPlaceKernel : public Kernel {
 public:
  explicit AxisPlaceKernel(int rank) : rank_(rank) {}
  std::string name() const override { return "comm"; }
  void run(const KernelArguments& arguments) override { *arguments.output<int64_t>(0) = rank_; }

 private:
  const int rank_;
};

/// Those along the axis of the node.
const std::shared_ptr<comm::Collectives>& collectives_of(const CollectivesByAxis& axes, const NodeSignature& node) {
  const std::string axis = node.attributes.has(kAxis) ? node.attributes.text(kAxis) : kDataAxis;
  const auto found = axes.find(axis);
  check(found != axes.end(), "an exchange along an axis that the mesh does not have");
  const bool has_ranks = node.attributes.has("ranks");
  check(!has_ranks || node.attributes.integer("ranks") == found->second->size(), "a graph for another number of ranks");
  return found->second;
}

}  // namespace

comm::CollectiveSpec reduction_of(const NodeSignature& node) {
  const CollectiveOps& ops = ops_of(node);
  comm::CollectiveSpec spec;
  spec.name = node.op->name == ops.whole ? fmt::format("'{}'", node.name)
                                         : fmt::format("collective {} ({})", node.attributes.integer("number"),
                                                       node.attributes.text("tensors"));
  spec.dtype = node.inputs[0].dtype;
  spec.kind = kind_of(ops.whole);
  if (comm::has_root(spec.kind)) spec.root = static_cast<int>(node.attributes.integer("root"));
  if (node.attributes.has("reduction") && node.attributes.text("reduction") == "mean")
    spec.reduction = comm::Reduction::mean;
  // What is gathered begins as one part.
  const bool is_part = spec.kind == comm::CollectiveKind::all_gather && node.op->name != ops.wait;
  const int64_t parts = comm::has_parts(spec.kind) && !is_part ? node.attributes.integer("ranks") : 1;
  for (const TensorType& type : node.inputs) spec.elements.push_back(type.bytes() / unpacked_size(type.dtype) / parts);
  return spec;
}

int64_t message_buffer_bytes(const std::vector<const Graph*>& graphs, const BufferBytes& bytes_of) {
  std::vector<std::pair<std::string, comm::CollectiveSpec>> counted;
  int64_t bytes = 0;
  for (const Graph* graph : graphs)
    for (size_t n = 0; n < graph->nodes().size(); ++n) {
      const Node& node = graph->nodes()[n];
      const CollectiveOps* const ops = find_collective(node);
      if (ops == nullptr || !ops->has_halves() || node.op->name == ops->wait) continue;
      std::pair of{axis_of_exchange(node), reduction_of(signature_of(*graph, NodeId{static_cast<int32_t>(n)}))};
      if (std::find(counted.begin(), counted.end(), of) != counted.end()) continue;
      bytes += bytes_of(of.first, of.second);
      counted.push_back(std::move(of));
    }
  return bytes;
}

void add_collective_kernels(KernelTable& table, std::shared_ptr<comm::Collectives> collectives) {
  add_message_kernels(table, collectives);
  add_collective_kernels(table, CollectivesByAxis{{kDataAxis, std::move(collectives)}});
}

void add_collective_kernels(KernelTable& table, const CollectivesByAxis& axes) {
  table.add_first(
      kOwnPart,
      {"comm",
       [axes](const NodeSignature& node, const KernelOptions& options, std::string&) -> std::unique_ptr<Kernel> {
         return std::make_unique<OwnPartKernel>(collectives_of(axes, node)->rank(), node, options.threads);
       }});
  table.add_first(
      kAxisPlace,
      {"comm", [axes](const NodeSignature& node, const KernelOptions&, std::string&) -> std::unique_ptr<Kernel> {
         return std::make_unique<AxisPlaceKernel>(collectives_of(axes, node)->rank());
       }});
  table.add_first(
      kAllToAll,
      {"comm", [axes](const NodeSignature& node, const KernelOptions&, std::string&) -> std::unique_ptr<Kernel> {
         return std::make_unique<AllToAllKernel>(collectives_of(axes, node), node);
       }});
  using Part = CollectiveKernel::Part;
  for (const CollectiveOps& ops : kCollectives) {
    if (!ops.has_halves()) continue;
    for (const auto& [op, part] :
         {std::pair{ops.whole, Part::both}, std::pair{ops.start, Part::start}, std::pair{ops.wait, Part::wait}}) {
      const auto make = [axes, part = part](const NodeSignature& node, const KernelOptions& options,
                                            std::string&) -> std::unique_ptr<Kernel> {
        // Declining would leave the node to a kernel that exchanges nothing.
        check(node.attributes.has("ranks") || node.inputs == node.outputs,
              "a collective's results have other types than its operands");
        return std::make_unique<CollectiveKernel>(part, collectives_of(axes, node), node, options.threads);
      };
      table.add_first(op, {"comm", make});
    }
  }
}

}  // namespace weft
