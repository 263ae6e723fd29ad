// The metrics that come with weft, a file each.
#pragma once

#include <string>
#include <vector>

#include "weft/library/entries.h"
#include "weft/spec/run_spec.h"

namespace weft::step {

/// In the order in which `weft keys` and messages list them.
std::vector<MetricEntry> all_metrics();

MetricEntry accuracy_entry();
MetricEntry token_accuracy_entry();
MetricEntry mean_iou_entry();
MetricEntry rmse_entry();
MetricEntry r2_entry();
MetricEntry mae_entry();
MetricEntry perplexity_entry();

/// Those that evaluations measure: of the task, then those that `metrics.names` adds. Error(usage) for names that there
/// are not.
std::vector<MetricEntry> metrics_of(const Entries& entries, const spec::MetricsSpec& spec, const std::string& task);

/// Of the metric that decides which checkpoint of such a run is the best; higher is better. nullopt where the loss
/// does.
std::optional<double> score_of(const Entries& entries, const std::string& task, const MetricValues& values);

/// f32[]: how many answers of the batch are right: of classes and tokens those whose largest logit is the label, or as
/// the model counts them; of sequences those that are right as a whole.
ValueId count_correct(Graph& graph, const models::Model& model, const models::ModelInput& input);

/// f32[K], named "squared_errors": of each value, summed over the rows. What rmse and R2 share.
void add_squared_errors(const MetricCall& call);

}  // namespace weft::step
