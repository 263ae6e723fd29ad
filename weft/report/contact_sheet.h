// Many images of a data set in one picture.
#pragma once

#include <filesystem>

#include "weft/data/dataset/dataset.h"
#include "weft/spec/run_spec.h"

namespace weft::report {

/// Writes a PNG with a row of images per class, or of images in order where there are no classes. With `augment`, each
/// row shows one image as the epochs of a run of this spec see it, normalised by `statistics` and set back. Small
/// images are shown larger, each pixel as a square. The name of its class stands below an image, where weft is built
/// with cairo. Error(usage) where the samples are no images.
void write_contact_sheet(const std::filesystem::path& path, const data::Dataset& dataset, const spec::RunSpec& spec,
                         const data::ChannelStatistics& statistics, bool augment);

}  // namespace weft::report
