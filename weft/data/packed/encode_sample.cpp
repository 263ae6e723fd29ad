#include "weft/data/packed/encode_sample.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/files.h"
#include "weft/data/formats/picture_options.h"

namespace weft::data {

namespace {

constexpr size_t kSmallTarget = 64;  // not worth compressing

/// The shorter side that samples are cut from.
int64_t resize_of(const DatasetInfo& info) {
  const nlohmann::json encoding = nlohmann::json::parse(info.encoding, nullptr, /*allow_exceptions=*/false);
  return encoding.is_object() ? encoding.value("resize", int64_t{0}) : 0;
}

StoredPart encode_picture(const std::string& path, const Encoder& encoder) {
  StoredPart part{Storage::picture, read_bytes(path)};
  if (encoder.size == 0 && encoder.quality == 0) {
    decode_image(path, part.bytes,
                 shortest_decoded(encoder.exact, encoder.resize));  // what cannot be read is not packed
    return part;
  }
  const Image image = decode_image(path, part.bytes, shortest_decoded(encoder.exact, encoder.size));
  const bool smaller = encoder.size > 0 && std::min(image.height, image.width) > encoder.size;
  const Image reduced = smaller ? resize_shorter(image, encoder.size) : image;
  if (!smaller && encoder.quality == 0) return part;
  const int64_t quality = encoder.quality > 0 ? encoder.quality : kUsualQuality;
  std::vector<uint8_t> encoded = encode_jpeg(reduced, static_cast<int>(quality));
  if (encoded.size() < part.bytes.size()) part.bytes = std::move(encoded);
  return part;
}

StoredPart encode_tokens(std::span<const uint16_t> tokens) {
  std::vector<uint8_t> bytes;
  for (const uint16_t token : tokens) {
    bytes.push_back(static_cast<uint8_t>(token));
    bytes.push_back(static_cast<uint8_t>(token >> 8));
  }
  return compress(bytes);
}

}  // namespace

Encoder make_encoder(const Dataset& dataset, int64_t size, int64_t quality) {
  Encoder encoder{.size = size, .quality = quality};
  if (!dataset.picture_file(0).empty()) {
    encoder.form = PackedForm::pictures;
    encoder.resize = resize_of(dataset.info());
    encoder.exact = decodes_exactly(dataset.info().encoding);
    if (size > 0 && size < encoder.resize)
      fail(ErrorKind::usage,
           "--size {} is smaller than what samples are cut from ({} pixels); give a larger one, or the data a smaller "
           "resize=",
           size, encoder.resize);
    return encoder;
  }
  if (size > 0 || quality > 0)
    fail(ErrorKind::usage, "--size and --quality are for folders of pictures, '{}' is none; leave them away",
         dataset.info().name);
  if (!dataset.tokens().empty()) encoder.form = PackedForm::tokens;
  return encoder;
}

int64_t records_of(const Dataset& dataset, const Encoder& encoder) {
  const auto tokens = static_cast<int64_t>(dataset.tokens().size());
  return encoder.form == PackedForm::tokens ? (tokens + kTokensPerRecord - 1) / kTokensPerRecord : dataset.size();
}

EncodedRecord encode_record(const Dataset& dataset, const Encoder& encoder, int64_t number) {
  EncodedRecord record;
  const DatasetInfo& info = dataset.info();
  try {
    if (encoder.form == PackedForm::tokens) {
      const std::span<const uint16_t> all = dataset.tokens().subspan(static_cast<size_t>(number * kTokensPerRecord));
      record.sample = encode_tokens(all.first(std::min(all.size(), static_cast<size_t>(kTokensPerRecord))));
      return record;
    }
    record.name = dataset.sample_name(number);
    if (info.target_kind() == TargetKind::sample_class && info.target_shape.rank() == 0 &&
        info.target_dtype == DType::i32) {
      record.label = dataset.label(number);
      if (record.label < 0 || record.label >= info.classes)
        fail(ErrorKind::data, "sample {} has class {}, there are {}", number, record.label, info.classes);
    } else {
      std::vector<uint8_t> target(static_cast<size_t>(info.target_bytes()));
      dataset.get_target({.index = number}, target);
      record.target = target.size() > kSmallTarget ? compress(target) : StoredPart{Storage::plain, std::move(target)};
    }
    if (encoder.form == PackedForm::pictures) {
      record.sample = encode_picture(dataset.picture_file(number).string(), encoder);
    } else {
      std::vector<uint8_t> sample(static_cast<size_t>(info.sample_bytes()));
      dataset.get({.index = number}, sample);
      record.sample = compress(sample);
    }
  } catch (const Error& error) {
    record.error = error.what();
  }
  return record;
}

}  // namespace weft::data
