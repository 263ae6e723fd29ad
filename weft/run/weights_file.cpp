#include "weft/run/weights_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/number_list.h"
#include "weft/data/dataset/data_spec.h"
#include "weft/data/formats/picture_options.h"
#include "weft/data/open_dataset.h"
#include "weft/interchange/safetensors/parameters.h"
#include "weft/tensor/safetensors.h"

namespace weft::run {

namespace {

using Metadata = std::map<std::string, std::string>;
constexpr std::string_view kModelOption = "model.";

[[noreturn]] void refuse_metadata(const WeightsFile& file, const std::string& key, const std::string& text,
                                  const char* wanted) {
  constexpr size_t kShown = 60;
  fail(ErrorKind::data, "'{}': its metadata say {} = '{}', which is no {}; correct them, or write the file anew",
       file.path.string(), key, text.size() > kShown ? text.substr(0, kShown) + "..." : text, wanted);
}

template <typename Number>
std::vector<Number> numbers_of(const WeightsFile& file, const Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  if (found == metadata.end() || found->second.empty()) return {};
  const std::optional<std::vector<Number>> numbers = parse_number_list<Number>(found->second);
  if (!numbers) refuse_metadata(file, key, found->second, "list of numbers such as 3,224,224");
  return *numbers;
}

/// As in a run's data.json.
spec::DataDescription trained_data(const std::filesystem::path& path, const std::string& text) try {
  return spec::parse_data_description(text, path.string());
} catch (const Error&) {
  fail(ErrorKind::data,
       "'{}': its metadata 'data', which describe what it was trained on, are damaged; write the file anew: "
       "`weft export RUN {}`",
       path.string(), quoted_for_shell(path.string()));
}

/// A JSON list, as `weft export` writes it.
std::vector<std::string> names_of_classes(const WeightsFile& file, const Metadata& metadata) {
  const auto found = metadata.find("class_names");
  if (found == metadata.end()) return {};
  const auto list = nlohmann::json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), [](const auto& name) { return name.is_string(); }))
    refuse_metadata(file, "class_names", found->second, "JSON list of texts");
  return list.get<std::vector<std::string>>();
}

/// Mean and deviation, where the data have what they are of. A line for the user.
std::string take_statistics(const Library& library, spec::AugmentSpec& augment, const std::string& data_spec,
                            const WeightsFile& file) {
  const data::ChannelStatistics& known = file.statistics;
  const std::unique_ptr<data::Dataset> data = data::open_dataset(library.data, data_spec, data::Split::train);
  const data::DatasetInfo& info = data->info();
  if (info.sample_dtype != DType::u8)
    return fmt::format("'{}' names mean and deviation of pixels; '{}' holds {} and does without them",
                       file.path.string(), info.name, info.item());
  if (const auto channels = static_cast<size_t>(info.sample_shape[0]); known.mean.size() != channels)
    return fmt::format(
        "'{}' names mean and deviation of {} channel{}; the images of '{}' have {} and are normalised by their own",
        file.path.string(), known.mean.size(), known.mean.size() == 1 ? "" : "s", info.name, channels);
  augment.mean.assign(known.mean.begin(), known.mean.end());
  augment.deviation.assign(known.deviation.begin(), known.deviation.end());
  return fmt::format("pixels are normalised as for '{}': mean {}, deviation {}", file.path.string(),
                     fmt::join(known.mean, ","), fmt::join(known.deviation, ","));
}

}  // namespace

WeightsFile describe_weights(const std::filesystem::path& path) {
  WeightsFile file{.path = path,
                   .shapes = {},
                   .model = {},
                   .options = {},
                   .input = {},
                   .class_names = {},
                   .statistics = {},
                   .data = {}};
  refuse_torch_files(path);
  SafetensorsHeader header = read_safetensors_header(path);
  const Metadata& metadata = header.metadata;
  file.shapes = std::move(header.shapes);
  const auto text = [&](const char* key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
  };
  file.model = text("model");
  for (const auto& [key, value] : metadata)
    if (key.starts_with(kModelOption)) file.options[key.substr(kModelOption.size())] = value;
  if (file.model.empty()) file.options.clear();  // of which model?
  file.input = numbers_of<int64_t>(file, metadata, "input");
  for (const int64_t dim : file.input)
    if (dim < 1) refuse_metadata(file, "input", text("input"), "shape of a sample such as 3,224,224");
  if (const std::vector<int64_t> classes = numbers_of<int64_t>(file, metadata, "classes"); !classes.empty()) {
    if (classes.size() != 1 || classes.front() < 1) refuse_metadata(file, "classes", text("classes"), "whole number");
    file.classes = classes.front();
  }
  file.class_names = names_of_classes(file, metadata);
  file.statistics = {numbers_of<float>(file, metadata, "mean"), numbers_of<float>(file, metadata, "deviation")};
  if (!data::can_be(file.statistics))
    refuse_metadata(file, "mean and deviation", text("mean") + "; " + text("deviation"),
                    "pair of as many numbers each, deviations above 0");
  file.is_from_weft = metadata.contains("task");
  if (metadata.contains("data")) file.data = trained_data(path, text("data"));
  file.decodes_exactly = !file.is_from_weft || (file.data && data::decodes_exactly(file.data->info.encoding));
  return file;
}

Metadata weights_metadata(const spec::RunSpec& spec, const spec::DataDescription& data) {
  const data::DatasetInfo& info = data.info;
  Metadata metadata = {{"format", "pt"}, {"model", spec.model.name}, {"task", info.task}};
  for (const auto& [name, value] : spec.model.options) metadata.emplace(std::string(kModelOption) + name, value);
  metadata.emplace("input", fmt::format("{}", fmt::join(info.sample_shape.dims(), ",")));
  metadata.emplace("classes", std::to_string(info.classes));
  if (!info.class_names.empty())
    metadata.emplace("class_names",
                     nlohmann::json(info.class_names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  if (!data.statistics.mean.empty()) {
    metadata.emplace("mean", fmt::format("{}", fmt::join(data.statistics.mean, ",")));
    metadata.emplace("deviation", fmt::format("{}", fmt::join(data.statistics.deviation, ",")));
  }
  metadata.emplace("data", spec::print_data_description(data));
  return metadata;
}

std::vector<std::string> take_model(spec::RunSpec& spec, const WeightsFile& file) {
  std::vector<std::string> lines;
  if (file.model.empty()) return lines;
  if (spec.model.name.empty()) spec.model.name = file.model;
  if (spec.model.name != file.model) {
    lines.push_back(fmt::format("'{}' says that its weights are of the model '{}'; '{}' was asked for, and counts",
                                file.path.string(), file.model, spec.model.name));
    return lines;
  }
  for (const auto& [name, value] : file.options) {
    const auto [given, is_new] = spec.model.options.emplace(name, value);
    if (!is_new && given->second != value)
      lines.push_back(fmt::format("'{}' says model.{} = {}; {} was asked for, and counts", file.path.string(), name,
                                  value, given->second));
  }
  return lines;
}

std::vector<std::string> take_over(const Library& library, spec::RunSpec& spec, const WeightsFile& file) {
  std::vector<std::string> lines = take_model(spec, file);
  const spec::AugmentSpec& augment = spec.augment;
  if (!file.statistics.mean.empty() && augment.mean.empty() && augment.deviation.empty() && augment.normalise)
    lines.push_back(take_statistics(library, spec.augment, spec.data, file));
  if (file.decodes_exactly && !data::has_option(spec.data, data::kDecodeOption) &&
      data::decodes_pictures(library.data, spec.data)) {
    spec.data = data::with_option(spec.data, data::kDecodeOption, "exact");
    lines.push_back(fmt::format("JPEG pictures are decoded exactly, as for '{}' (decode=exact)", file.path.string()));
  }
  return lines;
}

std::string note_of_other_classes(const spec::RunSpec& spec, const data::DatasetInfo& info, const WeightsFile& file) {
  if (spec.init_head != "auto" || file.class_names.size() != info.class_names.size() ||
      file.class_names == info.class_names)
    return "";
  return fmt::format(
      "'{}' names other classes ('{}', ...) than the data ('{}', ...); --init-head fresh starts their layer "
      "from the seed",
      file.path.string(), file.class_names.front(), info.class_names.front());
}

}  // namespace weft::run
