#include "weft/runtime/transfers.h"

#include "weft/base/error.h"
#include "weft/graph/offloaded.h"

namespace weft {

namespace {

struct Slot {
  int64_t offset = 0, bytes = 0;
};

class Store : public Kernel {
 public:
  Store(std::shared_ptr<OffloadFile> file, const Slot& slot) : file_(std::move(file)), slot_(slot) {}
  std::string name() const override { return "file"; }
  void run(const KernelArguments& arguments) override {
    file_->write(slot_.offset, arguments.input<std::byte>(0), slot_.bytes);
  }

 private:
  std::shared_ptr<OffloadFile> file_;
  Slot slot_;
};

class Load : public Kernel {
 public:
  Load(std::shared_ptr<OffloadFile> file, const Slot& slot, std::vector<Slot> ahead, int threads)
      : file_(std::move(file)), slot_(slot), ahead_(std::move(ahead)), threads_(threads) {}
  std::string name() const override { return "file"; }
  void run(const KernelArguments& arguments) override {
    file_->read(slot_.offset, arguments.output<std::byte>(0), slot_.bytes, threads_);
    for (const Slot& next : ahead_) file_->read_ahead(next.offset, next.bytes);
  }

 private:
  std::shared_ptr<OffloadFile> file_;
  Slot slot_;
  std::vector<Slot> ahead_;
  int threads_;
};

}  // namespace

std::vector<std::unique_ptr<Kernel>> make_transfers(const Graph& graph, const Plan& plan,
                                                    const std::shared_ptr<OffloadFile>& file) {
  std::vector<std::unique_ptr<Kernel>> kernels(plan.steps.size());
  if (plan.file_bytes == 0) return kernels;
  check(file != nullptr && file->bytes() >= plan.file_bytes, "a plan keeps values in a file that there is not");
  std::vector<size_t> loads;                             // steps
  std::vector<size_t> stored_at(graph.values().size());  // step
  const auto stored = [&](size_t step) {
    const Node& node = graph.node(plan.steps[step].node);
    return static_cast<size_t>((is_store(node) ? node.outputs : node.inputs)[0].index);
  };
  const auto slot = [&](size_t step) {
    const Placement& placement = plan.placements[stored(step)];
    return Slot{placement.offset, placement.bytes};
  };
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    const Node& node = graph.node(plan.steps[step].node);
    if (is_load(node)) loads.push_back(step);
    if (!is_store(node)) continue;
    stored_at[stored(step)] = step;
    kernels[step] = std::make_unique<Store>(file, slot(step));
  }
  size_t asked = 0;         // loads before this one have been read or asked for
  int64_t ahead_bytes = 0;  // asked for, not yet read
  for (size_t index = 0; index < loads.size(); ++index) {
    const size_t step = loads[index];
    if (index < asked)
      ahead_bytes -= slot(step).bytes;
    else
      asked = index + 1;
    std::vector<Slot> ahead;
    for (; asked < loads.size() && stored_at[stored(loads[asked])] < step; ++asked) {
      const Slot next = slot(loads[asked]);
      if (ahead_bytes > 0 && ahead_bytes + next.bytes > kOffloadWindowBytes) break;
      ahead.push_back(next);
      ahead_bytes += next.bytes;
    }
    kernels[step] = std::make_unique<Load>(file, slot(step), std::move(ahead), plan.threads);
  }
  return kernels;
}

}  // namespace weft
