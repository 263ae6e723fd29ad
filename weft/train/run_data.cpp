#include "weft/train/run_data.h"

#include <algorithm>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/data/open_dataset.h"

namespace weft::train {

namespace {

/// "idx:IMAGES,LABELS" names one pair of files and so no test data.
bool has_one_split(const std::string& data_spec) {
  return data_spec.starts_with("idx:") && std::count(data_spec.begin(), data_spec.end(), ',') == 1;
}

data::ChannelStatistics no_normalisation(int64_t channels) {
  const auto count = static_cast<size_t>(channels);
  return {std::vector<float>(count, 0.0f), std::vector<float>(count, 1.0f)};
}

std::string absolute(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

}  // namespace

std::string with_absolute_paths(const std::string& data_spec) {
  const size_t colon = data_spec.find(':');
  if (colon == std::string::npos) return data_spec;
  const std::string argument = data_spec.substr(colon + 1);
  std::string out = data_spec.substr(0, colon + 1);
  if (!data_spec.starts_with("idx:")) return out + absolute(argument);
  for (size_t begin = 0; begin <= argument.size();) {
    const size_t end = std::min(argument.find(',', begin), argument.size());
    const std::string path = absolute(argument.substr(begin, end - begin));
    if (path.find(',') != std::string::npos) return data_spec;  // a comma above this directory cannot be written
    out += (begin == 0 ? "" : ",") + path;
    begin = end + 1;
  }
  return out;
}

RunData open_run_data(const RunSpec& spec) {
  RunData run_data;
  run_data.training = data::open_dataset(spec.data, data::Split::train);
  if (!has_one_split(spec.data)) run_data.test = data::open_dataset(spec.data, data::Split::test);
  const data::DatasetInfo& info = run_data.training->info();
  if (run_data.training->size() < spec.batch)
    fail(ErrorKind::usage, "batch = {} is larger than the training data '{}' of {} samples; choose a smaller batch",
         spec.batch, info.name, run_data.training->size());
  if (run_data.test && run_data.test->info().sample_shape != info.sample_shape)
    fail(ErrorKind::data, "'{}': training images are {}, test images {}; they must have one shape", info.name,
         to_string(info.sample_shape), to_string(run_data.test->info().sample_shape));
  run_data.description = {
      info.name,
      info.sample_shape,
      info.classes,
      info.class_names,
      spec.augment.normalise ? data::channel_statistics(*run_data.training) : no_normalisation(info.sample_shape[0]),
      run_data.training->size()};
  return run_data;
}

std::unique_ptr<data::Dataset> open_evaluation_data(const std::string& data_spec) {
  return data::open_dataset(data_spec, has_one_split(data_spec) ? data::Split::train : data::Split::test);
}

models::ModelInput model_input(const DataDescription& description, int64_t batch) {
  return {.batch = batch, .shape = description.sample_shape.dims(), .classes = description.classes};
}

data::LoaderOptions training_loader_options(const RunSpec& spec, const DataDescription& description) {
  data::LoaderOptions options{.batch = spec.batch,
                              .seed = static_cast<uint64_t>(spec.seed),
                              .shuffle = true,
                              .drop_last = true,
                              .augment = {},
                              .statistics = description.statistics};
  options.augment.crop_padding = spec.augment.crop_padding;
  options.augment.padding = spec.augment.padding == "reflect" ? data::Padding::reflect : data::Padding::zero;
  options.augment.flip = spec.augment.flip == "random"        ? data::Flip::random
                         : spec.augment.flip == "alternating" ? data::Flip::alternating
                                                              : data::Flip::none;
  return options;
}

data::LoaderOptions evaluation_loader_options(const RunSpec& spec, const DataDescription& description) {
  return {.batch = spec.evaluation.batch,
          .seed = static_cast<uint64_t>(spec.seed),
          .augment = {},
          .statistics = description.statistics};
}

int64_t loader_bytes(const data::LoaderOptions& options, const DataDescription& description) {
  const int64_t images = align_up(options.batch * description.sample_shape.elements() * size_of(DType::f32));
  const int64_t labels = align_up(options.batch * size_of(DType::i32));
  return (images + labels) * (options.workers == 0 ? 1 : options.prefetch + 1);
}

}  // namespace weft::train
