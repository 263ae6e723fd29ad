#include "weft/predict/described_device.h"

#include <algorithm>

namespace weft::predict {

namespace {

class DescribedDevice : public Device {
 public:
  DescribedDevice(machines::DeviceFile file, std::unique_ptr<Device> stand_in)
      : file_(std::move(file)), stand_in_(std::move(stand_in)) {}

  std::optional<LayoutChoice> preferred_layouts(const NodeSignature&) const override { return std::nullopt; }
  bool supports_layouts(const NodeSignature& node) const override { return stand_in_->supports_layouts(node); }
  KernelChoice choose_kernel(const NodeSignature& node) const override {
    KernelChoice choice = stand_in_->choose_kernel(node);
    choice.declined.clear();
    return choice;
  }
  bool computes_fast(DType dtype) const override {
    const auto arithmetic = dtype == DType::bf16  ? machines::Arithmetic::bf16
                            : dtype == DType::f16 ? machines::Arithmetic::f16
                                                  : machines::Arithmetic::f32;
    return file_.peak(arithmetic) > file_.peak(machines::Arithmetic::f32);
  }
  std::string what_lacks(DType dtype) const override {
    return "'" + file_.name + "' does not multiply " + std::string(name_of(dtype)) + " faster than f32";
  }
  std::unique_ptr<Kernel> make_kernel(const NodeSignature& node) const override { return stand_in_->make_kernel(node); }
  std::unique_ptr<Kernel> make_kernel(const NodeSignature& node, const std::string& name) const override {
    return stand_in_->make_kernel(node, name);
  }
  int threads() const override { return stand_in_->threads(); }
  const std::shared_ptr<MemorySpace>& memory() const override { return stand_in_->memory(); }

 private:
  const machines::DeviceFile file_;
  const std::unique_ptr<Device> stand_in_;
};

}  // namespace

DeviceKind described_device(const machines::DeviceFile& file, const DeviceKind& here) {
  return {.name = file.name,
          .make = [file, make = here.make](const DeviceRequest& request) -> std::unique_ptr<Device> {
            return std::make_unique<DescribedDevice>(
                file, make({.threads = request.threads, .kernels = reference_kernels(), .tuning = {}}));
          },
          .describe_machine = [name = file.name](int) { return name; }};
}

}  // namespace weft::predict
