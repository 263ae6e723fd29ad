// Of classes and tokens the share whose largest logit is the label; of sequences those that are right as a whole.
#include "weft/ops/ops.h"
#include "weft/step/metrics/counted_labels.h"
#include "weft/step/metrics/entries.h"

namespace weft::step {

ValueId count_correct(Graph& graph, const models::Model& model, const models::ModelInput& input) {
  if (model.correct.valid()) return model.correct;
  if (input.source > 0) return count_right_sequences(graph, model.logits, model.labels, input.batch, "correct");
  return ops::count_correct(graph, model.logits, model.labels, "correct");
}

namespace {

void add_correct(const MetricCall& call) {
  if (!call.predicts_values())
    call.add_output("correct", [&] { return count_correct(call.graph, call.model, call.input); });
}

std::optional<double> share_correct(std::span<const double> sums, const MetricTotals& totals) {
  const bool whole = totals.info.target_kind() == data::TargetKind::sequence;  // what is right or wrong is a sequence
  return sums[0] / (whole ? totals.samples : totals.predictions);
}

}  // namespace

MetricEntry accuracy_entry() {
  return {.name = "accuracy",
          .summary = "share of the answers that are right",
          .label = "accuracy",
          .is_share = true,
          .outputs = {"correct"},
          .build = add_correct,
          .value = share_correct};
}

}  // namespace weft::step
