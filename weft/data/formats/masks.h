// masks:DIR: pictures in DIR/images with a class for every pixel in DIR/masks, of the same name but .png; or such pairs
// of folders in DIR/train and DIR/test (or val, valid, validation). Options, after a '?' and divided by '&':
//   height=128, width=128  of a sample; pictures are stretched to it, masks take the nearest pixel
//   channels=3           3 (RGB) or 1 (grey)
//   decode=scaled        exact: every pixel of a JPEG, as other programs decode it (pictures/image.h)
//   classes=N            default: as many as classes.txt names, or as the largest value in all masks, and 1
//   ignore=255           the value of pixels that do not count
//   split=0.2, seed=0    without a test folder: how large a part is set aside, and which
//   cache=auto           MB of pictures and masks to keep in memory; 0: decode each time; auto: by free memory
//   disk=auto            MB of those that find no place there to keep in a temporary file
// DIR/classes.txt, where it is there, names the classes, one on each line.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "weft/data/dataset/data_spec.h"
#include "weft/data/dataset/dataset.h"

namespace weft::data {

/// Samples are u8 (C,H,W), targets i32 (H,W), -100 where a pixel does not count. `encoding` as in open_dataset().
std::unique_ptr<Dataset> open_masks(const DataSpec& spec, Split split, const std::string& encoding);
bool masks_have_test_split(const DataSpec& spec);
/// A picture as samples are made of it: decoded no larger than needed, and stretched to the shape.
Image read_fitted(const std::filesystem::path& path, const DatasetInfo& info);
/// Whether it is weft that sets a part aside.
bool masks_have_whole(const DataSpec& spec);

}  // namespace weft::data
