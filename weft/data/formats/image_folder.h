// images:DIR: a folder of pictures per class, or such folders under DIR/train and DIR/test (or val, valid, validation).
// Options, after a '?' and divided by '&':
//   size=128            height and width of a sample
//   resize=146          the shorter side of a picture before the middle, or a random part, is cut out; default: size x
//                       8/7, as 256 to 224
//   channels=3          3 (RGB) or 1 (grey)
//   decode=scaled       JPEG by libjpeg's scaled decoding down to the next larger eighth; exact: every pixel, as Pillow
//                       and PyTorch's loaders decode
//   max_bad_records=0   how many pictures of a split that cannot be read are passed over, a number or a share such as
//   1%;
//                       without it the first is an error. In training the next picture of the same class stands for
//                       each, in every pass; for testing they are left out
//   split=0.2, seed=0   where DIR has no test folder: how large a part of every class is set aside, and which
//   cache=auto          MB of decoded pictures to keep in memory; 0: decode each time; auto: by the memory that is free
//   disk=auto           MB of those that find no place there to keep in a temporary file
// Files are read and decoded when a batch is made, in the loader's workers. A picture is decoded once, turned upright
// as its EXIF data say, and resized to the shorter side by image.h's antialiased filter.
#pragma once

#include <memory>

#include "weft/data/dataset/data_spec.h"
#include "weft/data/dataset/dataset.h"
#include "weft/data/pictures/image.h"

namespace weft::data {

/// Another picture as a trained model wants it: as above where it was trained on a folder, else stretched to the shape.
Image to_sample(const Image& image, const DatasetInfo& info);

/// Reads it for to_sample(): decoded no larger than in training.
Image read_sample(const std::filesystem::path& path, const DatasetInfo& info);

/// How samples are cut from pictures.
struct PictureSettings {
  int64_t size = 0, resize = 0, channels = 0;  // as the options say, or else as the model was trained
  std::vector<std::string> classes = {};       // of the trained model; empty: none is given
  bool exact = false;                          // decode=exact
};
/// Error(usage) for options out of range, Error(data) for the encoding of other data.
PictureSettings picture_settings(const SpecOptions& options, const std::string& encoding);
/// The encoding of such samples.
std::string print_encoding(const PictureSettings& settings, const std::vector<std::string>& classes);
/// For each of these classes its number in the trained model. Error(data), beginning with [`kind`], for one that it
/// does not know.
std::vector<int32_t> trained_numbers(const std::string& kind, const std::vector<std::string>& classes,
                                     const std::vector<std::string>& trained);

/// Classes are the folders, in the order of their names. `encoding` as in open_dataset().
std::unique_ptr<Dataset> open_image_folder(const DataSpec& spec, Split split, const std::string& encoding);
bool image_folder_has_test_split(const DataSpec& spec);
/// Whether it is weft that sets a part aside.
bool image_folder_has_whole(const DataSpec& spec);

}  // namespace weft::data
