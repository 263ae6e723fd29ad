#include "weft/engine/picture_input.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/data/augment/augment.h"
#include "weft/data/pictures/image.h"

namespace weft::engine {

namespace {

constexpr int64_t kMostSide = 65536;

data::Image to_size(const data::Image& image, const PictureInput& input) {
  if (input.resize == 0) return data::fit(image, {input.channels, input.height, input.width});
  data::Image middle{input.channels, input.height, input.width, {}};
  middle.pixels.resize(static_cast<size_t>(input.elements()));
  data::copy_middle(data::resize_shorter(data::with_channels(image, input.channels), input.resize), input.height,
                    input.width, middle.pixels);
  return middle;
}

}  // namespace

void check(const PictureInput& input, const std::string& name) {
  const auto is_side = [](int64_t side) { return side >= 1 && side <= kMostSide; };
  if ((input.channels != 1 && input.channels != 3) || !is_side(input.height) || !is_side(input.width))
    fail(ErrorKind::data, "{}: pictures cannot be {} x {} x {}; channels are 1 or 3", name, input.channels,
         input.height, input.width);
  if (input.resize != 0 && (input.resize < std::max(input.height, input.width) || input.resize > kMostSide))
    fail(ErrorKind::data, "{}: the middle of {} x {} cannot be cut from pictures whose shorter side is {}", name,
         input.height, input.width, input.resize);
  const auto channels = static_cast<size_t>(input.channels);
  if (input.mean.size() != channels || !data::can_be({input.mean, input.deviation}))
    fail(ErrorKind::data, "{}: {} means and {} deviations are none of {} channels", name, input.mean.size(),
         input.deviation.size(), input.channels);
}

void read_picture(const std::filesystem::path& path, const PictureInput& input, std::span<float> target) {
  const data::Image image = data::read_image(path, input.decodes_exactly ? 0 : input.resize);
  const data::Image sized = to_size(image, input);
  const data::Normalization normalization({input.mean, input.deviation}, input.channels);
  data::crop_and_normalise(sized.pixels, {input.channels, input.height, input.width}, {}, data::identity_choice({}),
                           normalization, target);
}

}  // namespace weft::engine
