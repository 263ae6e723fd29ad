// prediction.json: what is said of a run before its first step, with the strategy that it takes.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "weft/predict/prediction.h"
#include "weft/predict/run_prediction.h"
#include "weft/program/prepared_run.h"
#include "weft/run/run_directory.h"

namespace weft::run {

using NoteLine = std::function<void(const std::string&)>;

/// What predictions of runs on this machine are made from: measured times of ops where there are any, the links that
/// the run is planned by, and what making samples takes, which is measured for at most `loading_seconds`.
predict::Sources sources_here(const program::PreparedRun& run, double loading_seconds, bool exact,
                              const NoteLine& note);

/// The prediction of a run whose plans are made. With stop.target, when it is reached: from the runs in `folder`, but
/// for the one of this path.
predict::Prediction predict_here(program::PreparedRun& run, const predict::Sources& sources,
                                 const std::filesystem::path& folder, const std::filesystem::path& own);

void write_prediction(const RunDirectory& directory, program::PreparedRun& run, const NoteLine& note);
/// A tenth into the run: when the target is reached, with the time that the whole run takes by what was measured. Does
/// nothing where nothing was said of a target.
void revise_target(const RunDirectory& directory, const predict::Prediction& prediction,
                   std::optional<double> run_seconds);
/// Whether the directory holds one for as many ranks.
bool is_predicted_for(const RunDirectory& directory, const program::PreparedRun& run);
/// nullopt where there is none, and, after a line to `note`, where it cannot be read.
std::optional<predict::Prediction> read_prediction(const RunDirectory& directory, const NoteLine& note);

}  // namespace weft::run
