// Networks that come as a file of weights instead of a run directory, for `weft eval` and `weft
// predict`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/data/dataset/dataset.h"
#include "weft/library/library.h"
#include "weft/run/loaded_run.h"

namespace weft::infer {

/// How the user says what the weights belong to.
struct WeightsChoice {
  std::string weights;
  std::string model = {};             // empty: as the file says
  std::string data = {};              // empty: as the file says, or images as the model reads them
  std::string input = {};             // "3,224,224": such images, where neither the data nor the file say more
  std::vector<std::string> set = {};  // KEY=VALUE
  int64_t threads = 0;                // 0: all cores
};

/// As if a run of that model on that data had ended with these weights. What the file says of itself
/// (run/weights_file.h) counts where `choice` leaves it open; pictures that only the file or `choice.input` describe
/// are cut from the middle of a shorter side of 8/7, and decoded exactly. Error(usage) where model or data are missing,
/// Error(data) where the file is not of that model.
run::LoadedRun run_of_weights(const Library& library, const WeightsChoice& choice);

/// Other weights in place of the run's own.
void replace_weights(const Library& library, run::LoadedRun& run, const std::string& weights);

/// Error(usage) for a model of images whose mean and deviation nobody has said.
void require_statistics(const run::LoadedRun& run);

/// Statistics to normalise with, from "0.485,0.456,0.406" of pixels in [0, 1]; empty texts keep what `run` has.
/// Error(usage) unless there is one number per channel and deviations are above zero.
void set_statistics(run::LoadedRun& run, const std::string& mean, const std::string& deviation);

/// Writes "logits" f32[samples,..] of all samples, in the order of the data set: classes, or, where there are several
/// rows to a sample, those rows one after the other. With the run's evaluation.tta the means of those of the views.
void write_logits(const Library& library, run::LoadedRun& run, const data::Dataset& dataset,
                  const std::filesystem::path& path);

}  // namespace weft::infer
