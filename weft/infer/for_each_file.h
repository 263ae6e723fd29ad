// One prediction per file, for the parts of `weft predict`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "weft/base/error.h"
#include "weft/base/say.h"
#include "weft/infer/prediction.h"
#include "weft/infer/prediction_writer.h"

namespace weft::infer {

using nlohmann::ordered_json;

/// "-" is standard input.
inline std::string file_named(const std::string& file) { return file == "-" ? "/dev/stdin" : file; }

/// Calls `predict` for each file, which gives its JSON and prints where text is asked for.
template <typename Predict>
int for_each_file(const PredictOptions& options, Predict predict) {
  PredictionWriter writer(options.format);
  int64_t left_out = 0;
  for (const std::string& file : options.files) try {
      writer.add(predict(file));
    } catch (const Error& error) {  // the other files are predicted all the same
      say(error.what());
      ++left_out;
    }
  writer.finish();
  if (left_out > 0 && options.files.size() > 1)
    say(fmt::format("{} of {} files could not be predicted", left_out, options.files.size()));
  return left_out > 0 ? 1 : 0;
}

}  // namespace weft::infer
