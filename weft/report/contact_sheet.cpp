#include "weft/report/contact_sheet.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "weft/base/error.h"
#include "weft/data/dataset/class_names.h"
#include "weft/data/load/loader.h"
#include "weft/data/pictures/image.h"
#include "weft/plot/figure.h"
#include "weft/plot/label.h"
#include "weft/program/run_data.h"

namespace weft::report {

namespace {

constexpr int64_t kColumns = 10, kMostRows = 20;
constexpr int64_t kMostWidth = 2000, kGap = 4, kNameHeight = 14;  // in pixels
/// A narrower image is shown larger, so that the name of its class has room.
constexpr int64_t kLeastWidth = 80;

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

/// How large the square of a pixel is.
int64_t scale_of(const Shape& sample) { return (kLeastWidth + sample[2] - 1) / sample[2]; }

/// The cells of the sheet: an image, and a name below it.
class Sheet {
 public:
  Sheet(const Shape& sample, int64_t rows, int64_t columns, bool has_names)
      : height_(sample[1]),
        width_(sample[2]),
        scale_(scale_of(sample)),
        name_height_(has_names ? kNameHeight : 0),
        image_{sample[0], kGap + rows * cell_height(), kGap + columns * cell_width(), {}} {
    image_.pixels.assign(static_cast<size_t>(image_.channels * image_.height * image_.width), 255);
  }

  /// A normalised sample, set back to the pixels that give it.
  void paste(const Tensor& sample, const data::ChannelStatistics& statistics, int64_t row, int64_t column) {
    const int64_t top = kGap + row * cell_height(), left = kGap + column * cell_width();
    const float* value = sample.data_as<float>();
    for (int64_t channel = 0; channel < image_.channels; ++channel) {
      const float mean = statistics.mean[static_cast<size_t>(channel)];
      const float deviation = statistics.deviation[static_cast<size_t>(channel)];
      for (int64_t y = 0; y < height_; ++y)
        for (int64_t x = 0; x < width_; ++x) {
          const float share = std::clamp(*value++ * deviation + mean, 0.0f, 1.0f);
          fill(channel, top + y * scale_, left + x * scale_, static_cast<uint8_t>(std::lround(255 * share)));
        }
    }
  }

  void write_name(const std::string& name, int64_t row, int64_t column) {
    if (name_height_ == 0) return;
    const int64_t top = kGap + row * cell_height() + height_ * scale_, left = kGap + column * cell_width();
    const std::vector<uint8_t> label =
        plot::draw_label(name, static_cast<int>(width_ * scale_), static_cast<int>(name_height_));
    for (int64_t channel = 0; channel < image_.channels; ++channel)
      for (int64_t y = 0; y < name_height_; ++y)
        std::copy_n(label.begin() + y * width_ * scale_, width_ * scale_, at(channel, top + y, left));
  }

  const data::Image& image() const { return image_; }

 private:
  int64_t cell_height() const { return height_ * scale_ + name_height_ + kGap; }
  int64_t cell_width() const { return width_ * scale_ + kGap; }
  std::vector<uint8_t>::iterator at(int64_t channel, int64_t y, int64_t x) {
    return image_.pixels.begin() + (channel * image_.height + y) * image_.width + x;
  }
  void fill(int64_t channel, int64_t top, int64_t left, uint8_t value) {
    for (int64_t y = 0; y < scale_; ++y) std::fill_n(at(channel, top + y, left), scale_, value);
  }

  int64_t height_, width_, scale_, name_height_;
  data::Image image_;
};

}  // namespace

void write_contact_sheet(const std::filesystem::path& path, const data::Dataset& dataset, const spec::RunSpec& spec,
                         const data::ChannelStatistics& statistics, bool augment) {
  const data::DatasetInfo& info = dataset.info();
  if (info.sample_dtype != DType::u8)
    fail(ErrorKind::usage, "a contact sheet shows images, '{}' holds {}; leave --contact-sheet away", info.name,
         info.item());
  if (path.extension() != ".png")
    fail(ErrorKind::usage, "--contact-sheet '{}': want a name that ends in .png", path.string());
  const int64_t channels = info.sample_shape[0];
  if (channels != 1 && channels != 3)
    fail(ErrorKind::usage, "a contact sheet shows grey or RGB images, '{}' has {} channels", info.name, channels);
  const spec::DataDescription description{info, statistics, dataset.size()};
  data::LoaderOptions options = program::training_loader_options(spec, description);
  if (!augment) options.augment = {};
  options.batch = 1;
  options.workers = 0;
  const data::Loader loader(dataset, options);

  const bool has_classes = info.target_kind() == data::TargetKind::sample_class;
  const int64_t columns =
      std::clamp<int64_t>(kMostWidth / (scale_of(info.sample_shape) * info.sample_shape[2]), 1, kColumns);
  const int64_t shown = augment ? 1 : columns;
  const std::vector<std::vector<int64_t>> rows =
      has_classes ? rows_by_class(dataset, shown) : rows_of_all(dataset, shown);
  Sheet sheet(info.sample_shape, static_cast<int64_t>(rows.size()), columns, has_classes && plot::draws_pictures());
  for (size_t row = 0; row < rows.size(); ++row)
    for (int64_t column = 0; column < columns; ++column) {
      const std::vector<int64_t>& samples = rows[row];
      if (!augment && column >= static_cast<int64_t>(samples.size())) break;
      const int64_t sample = samples[augment ? 0 : static_cast<size_t>(column)];
      const auto place = static_cast<int64_t>(row);
      sheet.paste(loader.load_sample(sample, augment ? column : 0), statistics, place, column);
      if (has_classes) sheet.write_name(data::class_name(info.class_names, dataset.label(sample)), place, column);
    }
  data::write_png(path, sheet.image());
}

}  // namespace weft::report
