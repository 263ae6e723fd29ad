// Mean intersection over union: of each class, the rows that were predicted and labelled so, over those that were
// either; the mean over the classes that occur (Everingham et al. 2010, "The PASCAL VOC challenge", section 4.3).
#include "weft/base/error.h"
#include "weft/step/metrics/counted_labels.h"
#include "weft/step/metrics/entries.h"

namespace weft::step {

namespace {

void add_overlap(const MetricCall& call) {
  if (call.predicts_values()) return;
  const Overlap overlap = overlap_of_classes(call.graph, call.model.logits, call.model.labels);
  call.add_output("intersections", [&] { return overlap.intersections; });
  call.add_output("unions", [&] { return overlap.unions; });
}

/// Two sums for each class: of both, of either.
void add_overlaps(const MetricBatch& batch, std::span<double> sums) {
  const Tensor intersections = batch.output("intersections"), unions = batch.output("unions");
  check(2 * static_cast<size_t>(unions.elements()) == sums.size(), "overlaps of each class");
  for (size_t at = 0; at < sums.size() / 2; ++at) {
    sums[2 * at] += static_cast<double>(intersections.data_as<float>()[at]);
    sums[2 * at + 1] += static_cast<double>(unions.data_as<float>()[at]);
  }
}

std::optional<double> mean_over_classes(std::span<const double> sums, const MetricTotals& /*totals*/) {
  double sum = 0, classes = 0;
  for (size_t at = 0; at < sums.size(); at += 2)
    if (sums[at + 1] > 0) {
      sum += sums[at] / sums[at + 1];
      ++classes;
    }
  return classes > 0 ? std::optional(sum / classes) : std::nullopt;
}

}  // namespace

MetricEntry mean_iou_entry() {
  return {.name = "mean_iou",
          .summary = "intersection over union, the mean of the classes that occur",
          .label = "mean IoU",
          .is_share = true,
          .outputs = {"intersections", "unions"},
          .build = add_overlap,
          .sums = [](const data::DatasetInfo& info) { return 2 * info.classes; },
          .add = add_overlaps,
          .value = mean_over_classes};
}

}  // namespace weft::step
