#include "weft/machines/roofline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/graph/collective.h"

namespace weft::machines {

namespace {

WorkClass class_of(const OpDef& op) {
  if (op.name == "fused_attention" || op.name == "cached_attention") return WorkClass::attention;
  if (op.work.starts_with("convolutions")) return WorkClass::convolution;
  if (op.work == "matrix products" || op.work == "recurrent layers") return WorkClass::matrix_product;
  return WorkClass::memory;
}

/// How often a kernel reads its operands: the statistics of a normalisation need all of them before the first result.
double passes_of(const OpDef& op) {
  return op.work == "normalisation" && op.name.find("inference") == op.name.npos && op.name.starts_with("batch_norm")
             ? 2
             : 1;
}

Arithmetic arithmetic_of(const NodeSignature& node, bool uses_tf32) {
  for (const TensorType& type : node.inputs) {
    if (type.dtype == DType::f16) return Arithmetic::f16;
    if (type.dtype == DType::bf16) return Arithmetic::bf16;
    if (type.dtype == DType::i8 || type.dtype == DType::u8) return Arithmetic::i8;
  }
  return uses_tf32 ? Arithmetic::tf32 : Arithmetic::f32;
}

/// How many times longer a product takes than full waves of endless tiles would. Where sums are long, several units
/// share one: as many outputs more as there are kSplit products in each.
double waste_of(const Work& work, const Efficiency& efficiency) {
  constexpr double kSplit = 4096;
  if (work.outputs <= 0) return 1;
  const double depth = work.flops / 2 / work.outputs;
  const double outputs = work.outputs * std::max(1.0, std::floor(depth / kSplit));
  // Libraries take smaller tiles where that leaves less idle, though each does less with what it has read.
  constexpr std::pair<double, double> kTiles[] = {{1, 1}, {2, 0.9}, {4, 0.75}};
  double waste = std::numeric_limits<double>::infinity();
  for (const auto& [parts, share] : kTiles)
    waste = std::min(waste, (1 + efficiency.half_outputs / parts / outputs) / share);
  return waste * (1 + efficiency.half_depth / std::min(depth, kSplit));
}

bool is_three_by_three(const NodeSignature& node) {
  if (!node.attributes.has("stride") || !node.op->work.starts_with("convolutions")) return false;
  const TensorType& weight =
      node.op->work == "convolutions, gradient of the weights" ? node.outputs[0] : node.inputs[1];
  const std::vector<int64_t>& stride = node.attributes.integers("stride");
  return weight.shape.rank() == 4 && weight.shape[2] == 3 && weight.shape[3] == 3 &&
         std::all_of(stride.begin(), stride.end(), [](int64_t step) { return step == 1; });
}

class RooflineCosts : public CostModel {
 public:
  RooflineCosts(DeviceFile device, const RooflineOptions& options) : device_(std::move(device)), options_(options) {}

  NodeCost cost_of(const NodeSignature& node, int) const override {
    if (node.op->is_view || node.op->work == "communication") return {};
    return {seconds_of(work_of(node, options_), device_, options_.calibration), CostSource::rated};
  }
  std::string describe() const override { return fmt::format("rated by the device file of '{}'", device_.name); }

 private:
  const DeviceFile device_;
  const RooflineOptions options_;
};

}  // namespace

double seconds_of(const Work& work, const DeviceFile& device, const Calibration& calibration) {
  const Efficiency& memory = device.of(WorkClass::memory);
  double arithmetic = 0, traffic = 0;
  if (work.flops > 0 && work.kind != WorkClass::memory) {
    const Efficiency& efficiency = device.of(work.kind);
    double flops = work.flops;
    if (work.is_winograd && work.arithmetic == Arithmetic::f32) flops /= device.winograd;
    arithmetic =
        (flops * waste_of(work, efficiency) + efficiency.half_size) / (efficiency.best * device.peak(work.arithmetic));
  }
  if (work.bytes > 0) traffic = (work.bytes + memory.half_size) / (memory.best * device.bytes_per_second);
  return device.launch_seconds + std::max(calibration.arithmetic * arithmetic, calibration.memory * traffic);
}

bool states_cost(const OpDef& op) {
  constexpr std::string_view kMoving[] = {"casts", "communication", "copies", "file", "look-ups", "reorders"};
  return op.flops || op.is_view || std::find(std::begin(kMoving), std::end(kMoving), op.work) != std::end(kMoving);
}

Work work_of(const NodeSignature& node, const RooflineOptions& options) {
  if (!states_cost(*node.op))
    fail(ErrorKind::usage,
         "[{}] '{}': the op does not say what it costs, so that nothing says how long it takes on a device that is not "
         "here; give OpDef::flops, or OpDef::work \"copies\" where it only moves what it reads",
         node.op->name, node.name);
  Work work{.kind = class_of(*node.op), .arithmetic = arithmetic_of(node, options.uses_tf32)};
  if (node.op->flops) work.flops = static_cast<double>(node.op->flops(node.inputs, node.outputs, node.attributes));
  if (work.kind != WorkClass::memory && !node.outputs.empty()) {
    work.outputs = static_cast<double>(node.outputs[0].elements());
    work.is_winograd = is_three_by_three(node);
  }
  for (const TensorType& type : node.inputs) work.bytes += passes_of(*node.op) * static_cast<double>(type.bytes());
  for (const TensorType& type : node.outputs) work.bytes += static_cast<double>(type.bytes());
  return work;
}

std::shared_ptr<const CostModel> roofline_costs(const DeviceFile& device, const RooflineOptions& options) {
  return std::make_shared<RooflineCosts>(device, options);
}

}  // namespace weft::machines
