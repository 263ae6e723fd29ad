// Describes the data of a run without the data: enough to build the model and to feed it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/data/dataset/dataset.h"

namespace weft::spec {

/// data.json: enough to feed the model without the data set that it was trained on.
struct DataDescription {
  data::DatasetInfo info;
  data::ChannelStatistics statistics;  // of images
  int64_t samples = 0;                 // for training; 0: not known
  std::string target_checksum{};       // see data/checksums.h; empty: not known
};
std::string print_data_description(const DataDescription& description);
/// Error(data) beginning with `name` where the text is no description.
DataDescription parse_data_description(std::string_view text, const std::string& name);

/// A difference between the two that changes the training, in words; empty where there is none.
std::string difference_of(const DataDescription& then, const DataDescription& now);

}  // namespace weft::spec
