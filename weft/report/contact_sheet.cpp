#include "weft/report/contact_sheet.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "weft/base/error.h"
#include "weft/data/load/loader.h"
#include "weft/data/pictures/image.h"
#include "weft/program/run_data.h"

namespace weft::report {

namespace {

constexpr int64_t kColumns = 10, kMostRows = 20, kMostWidth = 2000, kGap = 2;  // the last two in pixels

/// Samples spread over the data set, `columns` a row.
std::vector<std::vector<int64_t>> rows_of_all(const data::Dataset& dataset, int64_t columns) {
  const int64_t count = std::min(dataset.size(), columns * kMostRows);
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>((count + columns - 1) / columns));
  for (int64_t at = 0; at < count; ++at) rows[static_cast<size_t>(at / columns)].push_back(at * dataset.size() / count);
  return rows;
}

/// Up to `columns` samples of each class, classes in order, samples spread over the data set.
std::vector<std::vector<int64_t>> rows_by_class(const data::Dataset& dataset, int64_t columns) {
  std::map<int32_t, std::vector<int64_t>> members;
  for (int64_t index = 0; index < dataset.size(); ++index) members[dataset.label(index)].push_back(index);
  std::vector<std::vector<int64_t>> rows;
  for (const auto& [label, samples] : members) {
    const auto count = static_cast<int64_t>(samples.size()), shown = std::min(columns, count);
    std::vector<int64_t> row;
    for (int64_t at = 0; at < shown; ++at) row.push_back(samples[static_cast<size_t>(at * count / shown)]);
    rows.push_back(std::move(row));
    if (static_cast<int64_t>(rows.size()) == kMostRows) break;
  }
  return rows;
}

/// Copies a sample with values in [0, 1] to a place of the sheet.
void paste(const Tensor& sample, int64_t top, int64_t left, data::Image& sheet) {
  const int64_t channels = sample.shape()[0], height = sample.shape()[1], width = sample.shape()[2];
  const float* value = sample.data_as<float>();
  for (int64_t channel = 0; channel < channels; ++channel)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        const auto at = static_cast<size_t>((channel * sheet.height + top + y) * sheet.width + left + x);
        sheet.pixels[at] = static_cast<uint8_t>(std::lround(255 * std::clamp(*value++, 0.0f, 1.0f)));
      }
}

}  // namespace

void write_contact_sheet(const std::filesystem::path& path, const data::Dataset& dataset, const spec::RunSpec& spec,
                         bool augment) {
  const data::DatasetInfo& info = dataset.info();
  if (info.sample_dtype != DType::u8)
    fail(ErrorKind::usage, "a contact sheet shows images, '{}' holds {}; leave --contact-sheet away", info.name,
         info.item());
  if (path.extension() != ".png")
    fail(ErrorKind::usage, "--contact-sheet '{}': want a name that ends in .png", path.string());
  const int64_t channels = info.sample_shape[0], height = info.sample_shape[1], width = info.sample_shape[2];
  if (channels != 1 && channels != 3)
    fail(ErrorKind::usage, "a contact sheet shows grey or RGB images, '{}' has {} channels", info.name, channels);
  spec::DataDescription description{info, {}, dataset.size()};
  description.statistics = {std::vector<float>(static_cast<size_t>(channels), 0.0f),
                            std::vector<float>(static_cast<size_t>(channels), 1.0f)};
  data::LoaderOptions options = program::training_loader_options(spec, description);
  if (!augment) options.augment = {};
  options.batch = 1;
  options.workers = 0;
  const data::Loader loader(dataset, options);

  const int64_t columns = std::clamp<int64_t>(kMostWidth / width, 1, kColumns), shown = augment ? 1 : columns;
  const std::vector<std::vector<int64_t>> rows = info.target_kind() == data::TargetKind::sample_class
                                                     ? rows_by_class(dataset, shown)
                                                     : rows_of_all(dataset, shown);
  const auto row_count = static_cast<int64_t>(rows.size());
  data::Image sheet{channels, kGap + row_count * (height + kGap), kGap + columns * (width + kGap), {}};
  sheet.pixels.assign(static_cast<size_t>(channels * sheet.height * sheet.width), 255);
  for (int64_t row = 0; row < row_count; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      const std::vector<int64_t>& samples = rows[static_cast<size_t>(row)];
      if (!augment && column >= static_cast<int64_t>(samples.size())) break;
      const Tensor sample = augment ? loader.load_sample(samples[0], column)
                                    : loader.load_sample(samples[static_cast<size_t>(column)], 0);
      paste(sample, kGap + row * (height + kGap), kGap + column * (width + kGap), sheet);
    }
  data::write_png(path, sheet);
}

}  // namespace weft::report
