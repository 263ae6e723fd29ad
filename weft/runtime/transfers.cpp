#include "weft/runtime/transfers.h"

#include "weft/base/error.h"
#include "weft/graph/offloaded.h"
#include "weft/plan/read_ahead.h"

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
  const auto slot = [&](size_t step) {
    const Placement& placement = plan.placements[static_cast<size_t>(stored_value(graph, plan.steps[step]).index)];
    return Slot{placement.offset, placement.bytes};
  };
  const std::vector<std::vector<size_t>> ahead_of = find_read_ahead(graph, plan);
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    const Node& node = graph.node(plan.steps[step].node);
    if (is_store(node)) kernels[step] = std::make_unique<Store>(file, slot(step));
    if (!is_load(node)) continue;
    std::vector<Slot> ahead;
    for (const size_t later : ahead_of[step]) ahead.push_back(slot(later));
    kernels[step] = std::make_unique<Load>(file, slot(step), std::move(ahead), plan.threads);
  }
  return kernels;
}

}  // namespace weft
