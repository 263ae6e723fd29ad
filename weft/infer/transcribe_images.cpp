// What a network reads in pictures of lines of text.
#include <numeric>

#include "weft/data/augment/augment.h"
#include "weft/data/formats/text_images.h"
#include "weft/infer/for_each_file.h"
#include "weft/infer/prediction.h"
#include "weft/models/ctc_decode.h"

namespace weft::infer {

int transcribe_images(PredictionModel& model, const PredictOptions& options) {
  const data::DatasetInfo& info = model.data().info;
  const auto encoding = data::TextImageEncoding::from_json(info.encoding);
  const data::Normalization normalization(model.data().statistics, info.sample_shape[0]);
  data::Batch batch = empty_batch(info);
  const std::span<float> pixels(batch.samples.data_as<float>(), static_cast<size_t>(batch.samples.elements()));
  return for_each_file(options, [&](const std::string& file) {
    const data::Image image = data::read_line_picture(file, info);
    data::crop_and_normalise(image.pixels, info.sample_shape, {}, data::identity_choice({}), normalization, pixels);
    const Tensor output = model.run(batch);  // [T,1,classes]
    const int64_t classes = output.shape()[2];
    const models::CtcReading reading =
        models::read_greedily(output.data_as<float>(), output.shape()[0], classes, classes);
    const std::string text = encoding.table.decode(reading.classes);
    if (!options.json()) fmt::print("{}\t{}\n", file, text);
    return ordered_json{{"file", file}, {"text", text}, {"certainty", reading.certainty}};
  });
}

}  // namespace weft::infer
