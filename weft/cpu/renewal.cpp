#include "weft/cpu/renewal.h"

#include "weft/graph/kept.h"

namespace weft {

namespace {

class Renewal : public Kernel {
 public:
  /// `copying` reads the source alone.
  explicit Renewal(std::unique_ptr<Kernel> copying) : copying_(std::move(copying)) {}
  std::string name() const override { return copying_->name(); }
  int64_t workspace_bytes() const override { return copying_->workspace_bytes(); }
  void run(const KernelArguments& arguments) override {
    copying_->run({arguments.inputs.subspan(1), arguments.outputs, arguments.workspace, arguments.context});
  }

 private:
  const std::unique_ptr<Kernel> copying_;
};

}  // namespace

void add_renewals(KernelTable& table, OpRegistry registry) {
  const auto make = [casts = table.candidates("cast"), reorders = table.candidates("reorder"),
                     registry = std::make_shared<const OpRegistry>(std::move(registry))](
                        const NodeSignature& node, const KernelOptions& options,
                        std::string& why_not) -> std::unique_ptr<Kernel> {
    const TensorType &source = node.inputs[1], &copy = node.outputs[0];
    const bool is_cast = source.dtype != copy.dtype;
    NodeSignature copying{&registry->get(is_cast ? "cast" : "reorder"), node.name, {source}, {copy}, {}};
    if (is_cast) copying.attributes.set("dtype", std::string(name_of(copy.dtype)));
    for (const KernelCandidate& candidate : is_cast ? casts : reorders)
      if (auto kernel = candidate.make(copying, options, why_not)) return std::make_unique<Renewal>(std::move(kernel));
    return nullptr;
  };
  table.add(kRenew, {"native", make});
}

}  // namespace weft
