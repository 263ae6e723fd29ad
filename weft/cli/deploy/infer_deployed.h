// weft infer of what `weft compile` writes, and of runs: pictures or NumPy files, on one stream or several.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/library/library.h"

namespace weft::cli {

struct InferOptions {
  std::string model, output_dir, precision;  // precision: empty: as the model says
  std::vector<std::string> inputs, bind;
  int64_t threads = 0;  // of each stream; 0: all cores, shared out among the streams
  int64_t streams = 1;
  int64_t batch = 0;                // rows of each run; 0: as many as there are for each stream
  int64_t repeat = 0;               // runs of each stream to measure
  bool profiles = false;            // the nodes of as many runs more
  std::optional<int64_t> top = {};  // classes of each picture to name; nullopt: 1
  bool pins = true;
  bool json = false;
};

/// "OUTPUT.npy" without what no file name holds.
std::string output_file(const std::string& output);
/// "-1.25 to 3.5, the largest at 17", with ", 2 of 10 NaN" behind it where some are
std::string range_of(const Tensor& tensor);

int infer_deployed(const Library& library, const InferOptions& options);

}  // namespace weft::cli
