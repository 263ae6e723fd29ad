// What a file of weights says of itself beside its tensors: `weft export` writes it as metadata, other programs may.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/library/library.h"
#include "weft/spec/data_description.h"
#include "weft/spec/run_spec.h"

namespace weft::run {

struct WeightsFile {
  std::filesystem::path path;
  std::map<std::string, Shape> shapes;  // of the tensors
  // Empty or 0: it does not say.
  std::string model;
  models::ModelOptions options;
  std::vector<int64_t> input;  // (C,H,W)
  int64_t classes = 0;
  std::vector<std::string> class_names;
  data::ChannelStatistics statistics;         // `mean` and `deviation`, of pixels in [0, 1]
  std::optional<spec::DataDescription> data;  // what weft trained it on
  bool is_from_weft = false;
  bool decodes_exactly = true;  // its pictures: what weft trained otherwise says so
};

/// Reads the header alone. Error(data) naming the file and the key for metadata that cannot be read.
WeightsFile describe_weights(const std::filesystem::path& path);

/// "mean", "deviation", "model", "model.width", ...: what describe_weights() reads back.
std::map<std::string, std::string> weights_metadata(const spec::RunSpec& spec, const spec::DataDescription& data);

/// Gives `spec` the model and the model's options that the file names and `spec` leaves open. Returns lines that name
/// what contradicts: there the spec counts.
std::vector<std::string> take_model(spec::RunSpec& spec, const WeightsFile& file);

/// Gives a run that starts from these weights what belongs to them and the spec leaves open: the model's options, mean
/// and deviation (augment.mean) where the data have as many channels, and exact decoding of pictures where they were
/// trained with it or elsewhere. Returns lines for the user. Throws as open_dataset().
std::vector<std::string> take_over(const Library& library, spec::RunSpec& spec, const WeightsFile& file);

/// A line for the user where the data have as many classes as the file, but other ones, and the last layer is taken all
/// the same; empty elsewhere.
std::string note_of_other_classes(const spec::RunSpec& spec, const data::DatasetInfo& info, const WeightsFile& file);

}  // namespace weft::run
