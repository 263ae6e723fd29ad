// From a sample of a data set to the parts of its record.
#pragma once

#include <string>

#include "weft/data/dataset/dataset.h"
#include "weft/data/packed/manifest.h"
#include "weft/data/packed/record.h"

namespace weft::data {

inline constexpr int64_t kUsualQuality = 90;  // of JPEG; ffcv's default

/// How the records of a data set are packed. Error(usage) for what makes no sense.
struct Encoder {
  PackedForm form = PackedForm::samples;
  int64_t resize = 0;             // pictures: the shorter side that samples are cut from
  bool exact = false;             // pictures: JPEG is decoded exactly before it is made smaller
  int64_t size = 0, quality = 0;  // as in PackOptions
};
Encoder make_encoder(const Dataset& dataset, int64_t size, int64_t quality);

/// How many records there are of it.
int64_t records_of(const Dataset& dataset, const Encoder& encoder);

struct EncodedRecord {
  StoredPart target, sample;
  std::string name, error;  // the error that keeps it from being packed; or empty
  int32_t label = 0;
};
/// Reads, checks and encodes one. Errors of the sample are in the result.
EncodedRecord encode_record(const Dataset& dataset, const Encoder& encoder, int64_t number);

}  // namespace weft::data
