// What was predicted of a run beside what is measured, for `weft explain`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "weft/report/explained.h"
#include "weft/run/run_directory.h"

namespace weft::report {

/// A row for each part of a step: predicted before the run, measured now, the error; and for the whole run: step time,
/// memory, rate and duration beside those of the training, as far as it has come. Empty where nothing was predicted.
std::string prediction_text(const run::RunDirectory& run, const Explained& explained);
/// The same as data; null where nothing was predicted.
nlohmann::ordered_json prediction_json(const run::RunDirectory& run, const Explained& explained);

/// When the run reaches stop.target by where its own evaluations lead. Empty where it wants nothing, or has reached it.
std::string target_text(const run::RunDirectory& run, const spec::RunSpec& spec, const Entries& entries);

/// What metrics.noise_every has measured: how far the batch can grow. Empty where nothing was.
std::string noise_text(const run::RunDirectory& run, int64_t batch);

}  // namespace weft::report
