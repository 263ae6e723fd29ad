// The class of each pixel of pictures: their shares in print, masks as PNG files where asked for.
#include <algorithm>
#include <filesystem>
#include <map>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/base/table.h"
#include "weft/data/augment/augment.h"
#include "weft/data/formats/masks.h"
#include "weft/data/pictures/mask.h"
#include "weft/infer/for_each_file.h"
#include "weft/infer/prediction.h"

namespace weft::infer {

namespace {

namespace fs = std::filesystem;

fs::path mask_of(const std::string& picture, const std::string& folder) {
  return fs::path(folder) / fs::path(picture).stem().concat(".png");
}

/// Error(usage) where a mask would replace one of the pictures, or the mask of another one.
void require_own_masks(const std::vector<std::string>& pictures, const std::string& folder) {
  const auto real = [](const fs::path& path) {
    std::error_code code;
    fs::path found = fs::weakly_canonical(path, code);
    return code ? fs::absolute(path).lexically_normal() : found;
  };
  std::map<fs::path, std::string> masks;
  for (const std::string& picture : pictures) {
    const fs::path mask = mask_of(picture, folder);
    const auto [other, is_new] = masks.emplace(real(mask), picture);
    if (!is_new)
      fail(ErrorKind::usage, "'{}' and '{}' would have one mask, '{}'; predict them into different folders",
           other->second, picture, mask.string());
  }
  for (const std::string& picture : pictures)
    if (masks.contains(real(picture)))
      fail(ErrorKind::usage, "--masks {}: a mask would replace the picture '{}'; name another folder", folder, picture);
}

/// The likeliest class of each row of probabilities, as a picture of the sample's size.
data::Image likeliest(const Tensor& probabilities, int64_t height, int64_t width) {
  data::Image mask{1, height, width, {}};
  const int64_t classes = probabilities.shape()[1];
  const float* row = probabilities.data_as<float>();
  for (int64_t pixel = 0; pixel < height * width; ++pixel, row += classes)
    mask.pixels.push_back(static_cast<uint8_t>(std::max_element(row, row + classes) - row));
  return mask;
}

}  // namespace

int segment_images(PredictionModel& model, const PredictOptions& options) {
  const data::DatasetInfo& info = model.data().info;
  const int64_t height = info.sample_shape[1], width = info.sample_shape[2];
  const data::Normalization normalization(model.data().statistics, info.sample_shape[0]);
  data::Batch batch = empty_batch(info);
  const std::span<float> pixels(batch.samples.data_as<float>(), static_cast<size_t>(batch.samples.elements()));
  if (!options.masks.empty()) {
    require_own_masks(options.files, options.masks);
    make_directories(options.masks);
  }
  return for_each_file(options, [&](const std::string& file) {
    const data::Image sample = data::read_fitted(file, info);
    data::crop_and_normalise(sample.pixels, info.sample_shape, {}, data::identity_choice({}), normalization, pixels);
    const data::Image mask = likeliest(model.run(batch), height, width);
    std::vector<int64_t> counts(static_cast<size_t>(info.classes));
    for (const uint8_t value : mask.pixels) ++counts[value];
    auto classes = ordered_json::array();
    Table table({{"", Align::left}, {"", Align::right}});
    for (int64_t index = 0; index < info.classes; ++index) {
      const double share =
          static_cast<double>(counts[static_cast<size_t>(index)]) / static_cast<double>(height * width);
      classes.push_back({{"class", index}, {"name", model.class_name(index)}, {"share", share}});
      if (share > 0) table.add_row({"  " + model.class_name(index), fmt::format("{:.2f} %", 100 * share)});
    }
    ordered_json result{{"file", file}, {"classes", classes}};
    if (!options.json()) fmt::print("{}\n{}", file, table.text());
    if (!options.masks.empty()) {
      const fs::path path = mask_of(file, options.masks);
      const data::Image picture = data::read_image(file);  // as large as it is
      data::write_png(path, data::resize_mask(mask, picture.height, picture.width));
      result["mask"] = path.string();
      if (!options.json()) fmt::print("  mask: {}\n", path.string());
    }
    return result;
  });
}

}  // namespace weft::infer
