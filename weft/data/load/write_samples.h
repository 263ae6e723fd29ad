// Samples as other programs read them: NumPy's files, as a network gets them.
#pragma once

#include <filesystem>
#include <string>

#include "weft/data/dataset/dataset.h"

namespace weft::data {

/// Writes the first samples of the data set, `most` at most (0: all), as FOLDER/PART_samples.npy and
/// FOLDER/PART_targets.npy, and gives their number. Images are f32 and normalised by the statistics, as in evaluation.
/// The folder is made where it is missing. Each file is there whole or not at all.
int64_t write_samples(const Dataset& dataset, const ChannelStatistics& statistics, int64_t most,
                      const std::filesystem::path& folder, const std::string& part);

}  // namespace weft::data
