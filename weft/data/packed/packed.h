// packed:DIR: training records that `weft pack` has written, read through memory maps. Options, after a '?':
//   max_bad_records=1%   how many damaged records of a split are passed over, a number or a share; more are an error
//   size, resize, channels, decode, cache, disk   of packed pictures, as of a folder of pictures
//   (formats/image_folder.h)
// The same samples in the same order as the data had that were packed.
#pragma once

#include <filesystem>
#include <memory>

#include "weft/data/dataset/data_spec.h"
#include "weft/data/dataset/dataset.h"
#include "weft/data/packed/manifest.h"

namespace weft::data {

/// In place of a damaged training record the next whole one is read; damaged test records are left out. `encoding` as
/// in open_dataset().
std::unique_ptr<Dataset> open_packed(const DataSpec& spec, Split split, const std::string& encoding);
bool packed_has_test_split(const DataSpec& spec);
/// Files of pictures, not decoded ones.
bool packed_holds_pictures(const DataSpec& spec);

/// The same of a folder whose manifest is at hand.
std::unique_ptr<Dataset> open_packed(const PackedManifest& manifest, const DataSpec& spec, Split split,
                                     const std::string& encoding);

/// Error(io) or Error(data), naming the file.
PackedManifest read_packed_manifest(const std::filesystem::path& directory);

}  // namespace weft::data
