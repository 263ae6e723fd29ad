// One prediction per file, for the parts of `weft predict`.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "weft/base/error.h"
#include "weft/base/say.h"
#include "weft/infer/prediction.h"

namespace weft::infer {

using nlohmann::ordered_json;

/// "-" is standard input.
inline std::string file_named(const std::string& file) { return file == "-" ? "/dev/stdin" : file; }

/// Calls `predict` for each file, which gives its JSON and prints where no JSON is asked for.
template <typename Predict>
int for_each_file(const PredictOptions& options, Predict predict) {
  auto results = ordered_json::array();
  int code = 0;
  for (const std::string& file : options.files) try {
      results.push_back(predict(file));
    } catch (const Error& error) {  // the other files are predicted all the same
      say(error.what());
      code = 1;
    }
  if (options.json) fmt::print("{}\n", results.dump(2, ' ', false, ordered_json::error_handler_t::replace));
  return code;
}

}  // namespace weft::infer
