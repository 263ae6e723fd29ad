// The metrics of an epoch by name, as a recipe watches them: "train_loss", "validation_accuracy", "test_loss".
#pragma once

#include <optional>
#include <string>

#include "weft/library/entries.h"
#include "weft/spec/run_spec.h"
#include "weft/step/metrics.h"

namespace weft::step {

/// nullopt where the epoch did not measure it.
std::optional<double> monitored(const std::string& monitor, const EpochMetrics& metrics);

/// Losses are better where they are lower; of other metrics their entry says it.
bool higher_is_better(const std::string& monitor, const Entries& entries);

/// Whether evaluations within a run measure the test data: they do where there is no validation part, the recipe asks
/// for it, or a metric of the test data decides something. Else they are measured once, at the end.
bool measures_test_data_each_time(const spec::RunSpec& spec);

}  // namespace weft::step
