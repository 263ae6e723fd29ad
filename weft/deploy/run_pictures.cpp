#include "weft/deploy/run_pictures.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "weft/data/formats/picture_options.h"

namespace weft::deploy {

std::optional<engine::PictureInput> run_pictures(const spec::DataDescription& data) {
  const data::DatasetInfo& info = data.info;
  if (info.sample_dtype != DType::u8 || info.sample_shape.rank() != 3 || data.statistics.mean.empty())
    return std::nullopt;
  engine::PictureInput pictures{.channels = info.sample_shape[0],
                                .height = info.sample_shape[1],
                                .width = info.sample_shape[2],
                                .resize = 0,
                                .decodes_exactly = data::decodes_exactly(info.encoding),
                                .mean = data.statistics.mean,
                                .deviation = data.statistics.deviation};
  const auto learned = nlohmann::json::parse(info.encoding, nullptr, /*allow_exceptions=*/false);
  if (learned.is_object() && learned.value("kind", std::string()) == "images")
    pictures.resize = learned.value("resize", std::max(pictures.height, pictures.width));
  return pictures;
}

std::map<std::string, std::string> picture_metadata(const engine::PictureInput& pictures) {
  return {{kResizeMetadata, std::to_string(pictures.resize)},
          {kDecodeMetadata, pictures.decodes_exactly ? "exact" : "scaled"}};
}

}  // namespace weft::deploy
