// What earlier runs on this machine say of a new one: their curves.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/library/library.h"
#include "weft/predict/curves.h"
#include "weft/run/metrics_history.h"
#include "weft/spec/run_spec.h"

namespace weft::run {

/// What evaluations have measured of a metric, by steps done.
std::vector<std::pair<int64_t, double>> points_of(const MetricsHistory& history, const std::string& metric);

/// What the recipe wants to reach (stop.target); nullopt where it names nothing.
std::optional<predict::Target> target_of(const spec::RunSpec& spec, const Entries& entries);

/// Of the run directories in `folder`, but for `own`, whose model and data are those of the spec: the curves of a
/// metric that evaluations measure. Those whose recipes differ in nothing but the seed and the machine are like the new
/// one; others by how much of them is alike. Skips what cannot be read.
std::vector<predict::Curve> earlier_curves(const Library& library, const std::filesystem::path& folder,
                                           const std::filesystem::path& own, const spec::RunSpec& spec,
                                           const std::string& metric);

}  // namespace weft::run
